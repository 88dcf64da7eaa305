"""What can a program do with RotBench? One method per thing the API offers, typed on both sides."""

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, BinaryIO, Self, overload
from urllib.parse import quote

from client.catalogue import CellModel, Recipe, Task
from client.comparisons import Comparisons, OneOrMore, OneOrMoreNumbers
from client.connection import Connection, find
from client.errors import RotBenchError
from client.following import Progress, follow
from client.http import Hashed, Transport
from client.results import (
    Attempt,
    Checkpoint,
    Event,
    HiddenNormTrace,
    LogPage,
    MetricSeries,
    Purged,
    Run,
    RunPage,
    Sweep,
    SweepPage,
    SweepPlan,
    Worker,
)
from client.wire import items, read

Config = Mapping[str, Any]


class RotBench(Comparisons):
    """A client of one RotBench API.

        with RotBench() as bench:
            run = bench.submit({"model": {"cell": "lru"}})
            print(bench.wait(run).latest)

    Args:
        url: Address such as http://127.0.0.1:8000; without it ROTBENCH_URL, then the nearest local stack.
        token: Without it ROTBENCH_TOKEN, then the token of the local stack at that address.
        timeout_s: Longest wait for one answer.
        transport: A ready transport in place of all of these.

    Raises:
        APIUnreachable: No address is given anywhere.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout_s: float = 30.0,
        transport: Transport | None = None,
    ) -> None:
        self._http = transport or Transport(find(url, token), timeout_s=timeout_s)

    @property
    def connection(self) -> Connection:
        """The address and token in use, and where they were found."""
        return self._http.connection

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def submit(
        self,
        config: Config,
        *,
        name: str | None = None,
        priority: str | None = None,
        dedupe: str | None = None,
        idempotency_key: str | None = None,
    ) -> Run:
        """Put one run in the queue; the same key with the same run gives the same run back.

        dedupe "reuse" takes a run that exists with the same configuration, "force" (the default) starts it anew.
        """
        body = _without_none({"config": dict(config), "name": name, "priority": priority, "dedupe": dedupe})
        return read(Run, self._http.post("/v1/runs", body, key=idempotency_key or str(uuid.uuid4())))

    def run(self, run_id: str) -> Run:
        """One run as it stands."""
        return read(Run, self._http.get(_path("runs", run_id)))

    def run_page(
        self,
        *,
        status: OneOrMore = None,
        cell: OneOrMore = None,
        task: OneOrMore = None,
        sweep_id: str | None = None,
        depth: OneOrMoreNumbers = None,
        seed: OneOrMoreNumbers = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> RunPage:
        """One page of runs, newest first."""
        query = {
            "status": status,
            "cell": cell,
            "task": task,
            "sweep_id": sweep_id,
            "depth": depth,
            "seed": seed,
            "limit": limit,
            "cursor": cursor,
        }
        return read(RunPage, self._http.get("/v1/runs", query))

    def runs(self, **filters: Any) -> Iterator[Run]:
        """Every run that passes the filters of `run_page`, newest first, page after page."""
        cursor: str | None = filters.pop("cursor", None)
        while True:
            page = self.run_page(cursor=cursor, **filters)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def cancel(self, run_id: str) -> Run:
        """Ask for an end: a waiting run ends at once, a running one at its next step."""
        return read(Run, self._http.post(_path("runs", run_id, "cancel")))

    def pause(self, run_id: str) -> Run:
        """Ask a run to stop with a checkpoint and wait."""
        return read(Run, self._http.post(_path("runs", run_id, "pause")))

    def resume(self, run_id: str) -> Run:
        """Put a paused, failed or cancelled run back in the queue; it goes on from its last checkpoint."""
        return read(Run, self._http.post(_path("runs", run_id, "resume")))

    def delete(self, run_id: str) -> None:
        """Delete a run that has ended, with all that it measured."""
        self._http.delete(_path("runs", run_id))

    def metrics(
        self, run_id: str, keys: OneOrMore = None, *, after_step: int | None = None, max_points: int | None = None
    ) -> dict[str, MetricSeries]:
        """Series of a run by key; all of them without `keys`."""
        query = {"key": keys, "after_step": after_step, "max_points": max_points}
        answer = self._http.get(_path("runs", run_id, "metrics"), query)
        return {series.key: series for series in items(MetricSeries, answer, "series")}

    def hidden_norms(
        self,
        run_id: str,
        statistic: OneOrMore = None,
        *,
        after_step: int | None = None,
        include_profile: bool = False,
    ) -> HiddenNormTrace:
        """The hidden norms of a run, layer by layer; all statistics without `statistic`."""
        query = {"statistic": statistic, "after_step": after_step, "include_profile": include_profile}
        return read(HiddenNormTrace, self._http.get(_path("runs", run_id, "hidden-norms"), query))

    def logs(self, run_id: str, *, after: str | None = None, limit: int | None = None) -> LogPage:
        """Log lines after a cursor; ask again with `next_cursor` to follow."""
        return read(LogPage, self._http.get(_path("runs", run_id, "logs"), {"after": after, "limit": limit}))

    def attempts(self, run_id: str) -> tuple[Attempt, ...]:
        """Each try at the run, first to last."""
        return items(Attempt, self._http.get(_path("runs", run_id, "attempts")))

    def history(self, run_id: str, *, after: int = 0) -> tuple[Event, ...]:
        """What happened to the run, first to last, after the event of that id."""
        return items(Event, self._http.get(_path("runs", run_id, "history"), {"after": after, "limit": 2000}))

    def follow(self, run_id: str, *, after: int = 0, patience_s: float = 60.0) -> Iterator[Event | Progress]:
        """What happens to the run, as it happens, and how far it is; ends when the run has ended.

        A connection that breaks is taken up again behind the last event received.

        Args:
            run_id: Which run.
            after: Only events with a higher id.
            patience_s: How long the API may be away at a stretch.
        """
        return follow(self._http, _path("runs", run_id, "events"), after=after, patience_s=patience_s)

    def checkpoints(self, run_id: str) -> tuple[Checkpoint, ...]:
        """The checkpoints that are kept."""
        return items(Checkpoint, self._http.get(_path("runs", run_id, "checkpoints")))

    def checkpoint(self, run_id: str, step: int, sink: BinaryIO, *, attempt: int | None = None) -> str:
        """Write a checkpoint's file into the sink; its SHA-256, which the bytes have.

        Raises:
            RotBenchError: There is none, the API cannot reach it, or other bytes came than the worker wrote.
        """
        hashed = Hashed(sink)
        path = _path("runs", run_id, "checkpoints", str(step), "file")
        headers = self._http.download(path, {"attempt": attempt}, hashed)
        if headers["x-rotbench-sha256"] != hashed.sha256:
            raise RotBenchError(
                f"the checkpoint of step {step} came with other bytes than were written",
                remedy="download it again; when that helps nothing, take an earlier one",
            )
        return hashed.sha256

    def sweep(
        self,
        config: Config,
        grid: Mapping[str, Sequence[Any]],
        *,
        name: str | None = None,
        priority: str | None = None,
        dedupe: str | None = None,
        match: str | None = None,
        idempotency_key: str | None = None,
    ) -> Sweep:
        """Start one run per cell of the grid over the base configuration.

        dedupe "reuse" takes runs that exist with the same configuration, "force" (the default) starts all anew.
        match "parameters" or "flops" gives each cell the d_state that brings it nearest to the first one.
        """
        body = _without_none(
            {
                "name": name,
                "config": dict(config),
                "grid": dict(grid),
                "priority": priority,
                "dedupe": dedupe,
                "match": match,
            }
        )
        return read(Sweep, self._http.post("/v1/sweeps", body, key=idempotency_key or str(uuid.uuid4())))

    def plan_sweep(
        self,
        config: Config,
        grid: Mapping[str, Sequence[Any]],
        *,
        match: str | None = None,
        dedupe: str | None = None,
    ) -> SweepPlan:
        """Check a sweep and count its runs and what they would take; nothing is started or stored."""
        body = {"config": dict(config), "grid": dict(grid), "dry_run": True, "match": match, "dedupe": dedupe}
        return read(SweepPlan, self._http.post("/v1/sweeps", _without_none(body), key=str(uuid.uuid4())))

    def get_sweep(self, sweep_id: str) -> Sweep:
        """One sweep as it stands."""
        return read(Sweep, self._http.get(_path("sweeps", sweep_id)))

    def sweep_page(self, *, limit: int | None = None, cursor: str | None = None) -> SweepPage:
        """One page of sweeps, newest first."""
        return read(SweepPage, self._http.get("/v1/sweeps", {"limit": limit, "cursor": cursor}))

    def sweeps(self) -> Iterator[Sweep]:
        """Every sweep, newest first, page after page."""
        cursor: str | None = None
        while True:
            page = self.sweep_page(cursor=cursor)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def cancel_sweep(self, sweep_id: str) -> Sweep:
        """Cancel every run of the sweep that has not ended."""
        return read(Sweep, self._http.post(_path("sweeps", sweep_id, "cancel")))

    def pause_sweep(self, sweep_id: str) -> Sweep:
        """Pause every run that the sweep made and that waits or trains."""
        return read(Sweep, self._http.post(_path("sweeps", sweep_id, "pause")))

    def resume_sweep(self, sweep_id: str) -> Sweep:
        """Queue every paused run that the sweep made."""
        return read(Sweep, self._http.post(_path("sweeps", sweep_id, "resume")))

    def extend_sweep(self, sweep_id: str, seeds: Sequence[int], *, dedupe: str | None = None) -> Sweep:
        """Queue every cell of the sweep with each further seed."""
        body = _without_none({"seeds": list(seeds), "dedupe": dedupe})
        return read(Sweep, self._http.post(_path("sweeps", sweep_id, "extend"), body, key=str(uuid.uuid4())))

    @overload
    def wait(self, started: Run | str, *, timeout_s: float | None = None, poll_s: float = 1.0) -> Run: ...
    @overload
    def wait(self, started: Sweep, *, timeout_s: float | None = None, poll_s: float = 1.0) -> Sweep: ...
    def wait(self, started: Run | Sweep | str, *, timeout_s: float | None = None, poll_s: float = 1.0) -> Run | Sweep:
        """Wait until a run, or every run of a sweep, has ended; a paused run has not.

        Args:
            started: A run, a run's id, or a sweep.
            timeout_s: Longest wait; without it there is no end to patience.
            poll_s: Pause between two looks.

        Returns:
            The run or sweep as it ended.

        Raises:
            TimeoutError: It has not ended in time.
        """
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while (now := self._again(started)).active:
            if until is not None and time.monotonic() >= until:
                done = f"is {now.status} at step {now.step}" if isinstance(now, Run) else f"has {now.done} runs done"
                raise TimeoutError(f"{type(now).__name__.lower()} {now.id} {done} after {timeout_s:g} s")
            time.sleep(poll_s)
        return now

    def _again(self, started: Run | Sweep | str) -> Run | Sweep:
        if isinstance(started, Sweep):
            return self.get_sweep(started.id)
        return self.run(started if isinstance(started, str) else started.id)

    def export(self, what: str, kind: str, sink: BinaryIO, **filters: Any) -> dict[str, Any]:
        """Write everything that was measured into a binary file, unthinned.

        Args:
            what: runs, metrics or hidden-norms.
            kind: csv, json (an object per line) or parquet.
            sink: Where it goes.
            filters: status, task, cell, depth, seed, sweep_id, run_id; key of metrics, statistic of hidden norms.

        Returns:
            Its provenance: the filters, the version of the code, and the time.
        """
        headers = self._http.download(f"/v1/export/{quote(what, safe='')}.{quote(kind, safe='')}", filters, sink)
        found: dict[str, Any] = json.loads(headers["x-rotbench-provenance"])
        return found

    def collect_garbage(
        self, *, older_than_days: float = 30.0, status: Sequence[str] | None = None, dry_run: bool = True
    ) -> Purged:
        """Count the runs that ended long ago, failed and cancelled ones by default, and without dry_run delete them.

        One call takes a hundred runs at most; `more` says whether there are others.
        """
        body = {"older_than_days": older_than_days, "status": list(status) if status else None, "dry_run": dry_run}
        return read(Purged, self._http.post("/v1/gc", _without_none(body)))

    def tasks(self) -> tuple[Task, ...]:
        """The data sets."""
        return items(Task, self._http.get("/v1/tasks"))

    def models(self) -> tuple[CellModel, ...]:
        """The cells and their options."""
        return items(CellModel, self._http.get("/v1/models"))

    def recipes(self) -> tuple[Recipe, ...]:
        """The complete configurations that come with RotBench."""
        return items(Recipe, self._http.get("/v1/recipes"))

    def workers(self) -> tuple[Worker, ...]:
        """The workers by their last beat."""
        return items(Worker, self._http.get("/v1/workers"))

    def ready(self) -> bool:
        """Whether the API answers and its database is in order."""
        try:
            self._http.get("/readyz")
        except RotBenchError:
            return False
        return True


def _path(*parts: str) -> str:
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def _without_none(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}
