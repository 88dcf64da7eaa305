"""How far is it? Progress of a run or a sweep until it ends: bars in a terminal, a line now and then in a pipe."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column

from client.api import RotBench
from client.cli.formats import duration, number, percent, plural
from client.cli.output import err, note
from client.errors import RotBenchError
from client.results import Event, Run, Sweep

T = TypeVar("T")
PATIENCE_S = 60.0
"""How long an API may be away, such as in a restart, before watching gives up."""
LINE_EVERY_S = 10.0
SHOWN_RUNS = 8
STATUS_ORDER = ("succeeded", "diverged", "failed", "cancelled", "cancelling", "running", "paused", "queued")
UNATTENDED_S = 15.0
"""After so long without a running run, it is worth looking whether a worker is there at all."""


def watch_run(client: RotBench, run_id: str, *, poll_s: float = 0.5) -> Run:
    """Show a run's progress until it ends.

    Returns:
        The run as it ended.
    """
    run = client.run(run_id)
    attendance = _Attendance(client)
    with _Screen() as screen:
        screen.show_run(run)
        while run.active:
            attendance.look(waiting=run.status == "queued", why=partial(_why_run, run))
            time.sleep(poll_s)
            run = patiently(lambda: client.run(run_id))
            screen.show_run(run)
    return run


def tell_events(client: RotBench, run_id: str) -> None:
    """A line on stderr for each thing that happens to a run, from its first on, until it ends."""
    for told in client.follow(run_id, patience_s=PATIENCE_S):
        if isinstance(told, Event):
            note(f"{told.at.astimezone():%H:%M:%S} {told.kind}: {told.message}")


def watch_sweep(client: RotBench, sweep_id: str, *, poll_s: float = 0.5) -> Sweep:
    """Show a sweep's progress, and that of its running runs, until all have ended.

    Returns:
        The sweep as it ended.
    """
    sweep = client.get_sweep(sweep_id)
    pace = Pace()
    attendance = _Attendance(client)
    with _Screen() as screen:
        while True:
            running = patiently(lambda: _running(client, sweep_id)) if sweep.active else ()
            left_s = pace.seconds_left(sweep.done + sum(run.progress for run in running), sweep.total)
            screen.show_sweep(sweep, running, left_s)
            if not sweep.active:
                return sweep
            attendance.look(waiting=not running and "queued" in sweep.counts, why=lambda: _why(client, sweep_id))
            time.sleep(poll_s)
            sweep = patiently(lambda: client.get_sweep(sweep_id))


def patiently(ask: Callable[[], T], patience_s: float = PATIENCE_S) -> T:
    """Ask again and again while the API, or its database, is away.

    Raises:
        RotBenchError: It stayed away for too long, or refuses.
    """
    until = time.monotonic() + patience_s
    while True:
        try:
            return ask()
        except RotBenchError as error:
            if not error.away or time.monotonic() >= until:
                raise
            time.sleep(1.0)


class Pace:
    """The time left, from the work done since watching began."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begin: tuple[float, float] | None = None

    def seconds_left(self, work: float, total: float) -> float | None:
        """Seconds until `work` reaches `total` at the pace so far; None while there is no pace yet."""
        now = self._clock()
        since, begun = self._begin = self._begin or (now, work)
        if work <= begun or now - since < 2:
            return None
        return (total - work) * (now - since) / (work - begun)


def run_label(run: Run) -> str:
    """What a run is: its cell, depth and seed."""
    return f"{run.cell} depth {run.depth} seed {run.seed}"


def run_words(run: Run) -> str:
    """Where a run stands: step, loss and accuracy."""
    words = [f"step {run.step:,}/{run.total_steps:,}"]
    if "train_loss" in run.latest:
        words.append(f"loss {number(run.latest['train_loss'], 3)}")
    accuracy = run.latest.get("test_accuracy", run.latest.get("validation_accuracy"))
    if accuracy is not None:
        words.append(f"accuracy {percent(accuracy)}")
    return ", ".join(words)


def sweep_words(sweep: Sweep) -> str:
    """Where a sweep stands: runs by status."""
    known = [status for status in STATUS_ORDER if status in sweep.counts]
    others = [status for status in sweep.counts if status not in STATUS_ORDER]
    return ", ".join(f"{sweep.counts[status]:,} {status}" for status in (*known, *others))


def outcome(run: Run) -> str:
    """How a run ended or stands, with the reason where there is one."""
    if run.divergence is not None:
        where = "outside the layers" if run.divergence.layer is None else f"in layer {run.divergence.layer}"
        return f"{run.status} at step {run.divergence.step:,}, first {where} ({run.divergence.kind})"
    why = run.waits_for or ": ".join(part for part in (run.failure_class, run.reason) if part)
    return f"{run.status} ({why})" if why else run.status


class _Attendance:
    """Says so, once, when runs wait and no worker is there to take them, or none that has their data."""

    def __init__(self, client: RotBench) -> None:
        self._client = client
        self._since: float | None = None
        self._told = False

    def look(self, *, waiting: bool, why: Callable[[], str | None]) -> None:
        now = time.monotonic()
        self._since = (self._since or now) if waiting else None
        if self._since is None or self._told or now - self._since < UNATTENDED_S:
            return
        self._since = now
        if reason := why():
            self._told = True
            note(f"Waiting: {reason}.")
        elif all(worker.state == "unknown" for worker in patiently(self._client.workers)):
            self._told = True
            note("No worker reports, so nothing can begin. `rotbench workers` lists them, `rotbench doctor` checks.")


class _Screen:
    """Bars on stderr when that is a terminal, else lines that say what changed."""

    def __init__(self) -> None:
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._most: dict[str, float] = {}
        self._said: tuple[float, object] = (float("-inf"), None)
        if err.is_terminal:
            self._bars = Progress(
                TextColumn("{task.fields[name]}", table_column=Column(no_wrap=True, overflow="ellipsis")),
                BarColumn(bar_width=None, table_column=Column(min_width=8, ratio=1)),
                TextColumn("{task.fields[words]}", table_column=Column(no_wrap=True, overflow="ellipsis")),
                TextColumn("{task.fields[left]}", table_column=Column(no_wrap=True, justify="right")),
                console=err,
                expand=True,
                transient=True,
                refresh_per_second=5,
            )

    def __enter__(self) -> "_Screen":
        if self._bars:
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars:
            self._bars.stop()

    def show_run(self, run: Run) -> None:
        if self._bars:
            self._draw(
                run.id, f"{run_label(run)} {run.status}", run_words(run), run.step, run.total_steps, run.seconds_left
            )
        else:
            self._tell(run.status, f"{run_label(run)}: {run.status}, {run_words(run)}", run.seconds_left)

    def show_sweep(self, sweep: Sweep, running: Sequence[Run], left_s: float | None) -> None:
        words = sweep_words(sweep)
        if not self._bars:
            done = f"{sweep.done:,} of {plural(sweep.total, 'run')} done"
            present = f"; {run_label(running[0])}: {run_words(running[0])}" if running else ""
            self._tell(sweep.counts, f"{done} ({words}{present})", left_s)
            return
        work = sweep.done + sum(run.progress for run in running)
        self._draw(sweep.id, f"{sweep.done:,} of {plural(sweep.total, 'run')}", words, work, sweep.total, left_s)
        shown = running[:SHOWN_RUNS]
        for gone in self._tasks.keys() - {sweep.id, *(run.id for run in shown)}:
            self._bars.remove_task(self._tasks.pop(gone))
        for run in shown:
            self._draw(run.id, f"  {run_label(run)}", run_words(run), run.step, run.total_steps, run.seconds_left)

    def _draw(self, key: str, name: str, words: str, work: float, total: float, left_s: float | None) -> None:
        assert self._bars is not None
        self._most[key] = max(work, self._most.get(key, 0.0))
        fields: dict[str, Any] = {
            "name": name,
            "words": words,
            "left": "" if left_s is None else f"{duration(left_s)} left",
        }
        if key not in self._tasks:
            self._tasks[key] = self._bars.add_task("", total=total, **fields)
        self._bars.update(self._tasks[key], completed=self._most[key], **fields)

    def _tell(self, state: object, text: str, left_s: float | None) -> None:
        now = time.monotonic()
        if state != self._said[1] or now - self._said[0] >= LINE_EVERY_S:
            self._said = (now, state)
            note(text if left_s is None else f"{text}, {duration(left_s)} left")


def _why_run(run: Run) -> str | None:
    return run.waits_for


def _why(client: RotBench, sweep_id: str) -> str | None:
    """Why the oldest of the latest queued runs of a sweep is not taken, as far as the API says."""
    waiting = patiently(lambda: client.run_page(sweep_id=sweep_id, status="queued", limit=SHOWN_RUNS)).items
    return waiting[-1].waits_for if waiting else None


def _running(client: RotBench, sweep_id: str) -> tuple[Run, ...]:
    return client.run_page(sweep_id=sweep_id, status="running", limit=SHOWN_RUNS * 8).items
