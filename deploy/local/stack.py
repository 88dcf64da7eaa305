"""In which order do the processes of a stack start and end, and what becomes of them in between?"""

import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import psutil

from deploy.local import ports
from deploy.local.binaries import ServerUnavailable
from deploy.local.devices import devices
from deploy.local.folder import Folder, write_json
from deploy.local.keeping import Kept, Service
from deploy.local.leftovers import GRACE_S, MARK, Identity, carriers, end_leftovers
from deploy.local.servers import EmbeddedPostgres, EmbeddedRedis
from deploy.local.services import Addresses, Program, Programs, Server, ask, stop

READY_WITHIN_S = 120.0
LOOK_EVERY_S = 0.2

INDISPENSABLE = frozenset({"postgres", "redis", "api", "dispatcher"})
"""Without one of these a stack is none; without a window or a worker it still is."""

HURRY_AFTER_S = 1.0
"""A second signal counts as impatience only this long after the first: terminals and parents often send both."""


class StackFailed(Exception):
    """The stack can't run; the message says which process, and what it said last."""


class _StopWanted(Exception):
    """A signal asked us to stop before the start was done."""


@dataclass(frozen=True)
class Wishes:
    """What somebody wants of a stack.

    Args:
        api_port: The first port to try for the API; 0 means any.
        dashboard_port: The same for the dashboard; None leaves the dashboard out.
        workers: How many; None means one per device.
    """

    api_port: int = 8000
    dashboard_port: int | None = 8501
    workers: int | None = None


class Stack:
    """The supervisor: one instance on one data folder, which the caller holds.

    Args:
        folder: The data folder.
        wishes: Ports and workers.
        say: Where sentences for people go.
    """

    def __init__(self, folder: Folder, wishes: Wishes, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._wishes = wishes
        self._say = say
        self._mark = secrets.token_hex(8)
        self._began_at = datetime.now(UTC)
        self._kept: list[Kept] = []
        self._addresses: Addresses | None = None
        self._ready = False
        self._signalled_at: float | None = None

    def run(self) -> None:
        """Start everything, keep it alive until a signal comes, and end everything.

        Raises:
            StackFailed: When something can't be started or kept alive; all the rest is ended first.
        """
        with self._signals():
            try:
                self._start()
                while self._signalled_at is None:
                    self._look()
                    time.sleep(LOOK_EVERY_S)
                self._say("Stopping; workers checkpoint first. Ctrl-C once more stops at once.")
            except _StopWanted:
                self._say("Stopping before the start was done.")
            finally:
                self._stop()

    def _start(self) -> None:
        began = time.monotonic()
        self._folder.make()
        for left in end_leftovers(self._folder):
            self._say(f"Ended what an earlier instance left behind: {left}")
        os.environ[MARK] = self._mark
        self._describe()
        postgres = EmbeddedPostgres(self._folder.postgres, log=self._folder.log_of("postgres"))
        redis = EmbeddedRedis(self._folder.redis, log=self._folder.log_of("redis"))
        self._launch(Server(postgres))
        self._launch(Server(redis))
        self._addresses = self._choose_addresses(postgres.url, redis.url)
        programs = Programs(self._folder, self._addresses, {MARK: self._mark})
        self._migrate(programs.migrate())
        workers = self._workers(programs)
        doors = [programs.api()] + ([] if self._wishes.dashboard_port is None else [programs.dashboard()])
        all_programs = [*doors, programs.dispatcher(), *workers]
        for program in all_programs:
            self._launch(program)
        for door in doors:
            self._wait_until(f"the {door.name} answers", all_programs, door.ready)
        self._wait_until("the workers report", all_programs, lambda: self._reporting() >= len(workers))
        self._ready = True
        self._describe()
        self._say(f"Ready after {time.monotonic() - began:.1f} s.")
        self._say(f"  API        {self._addresses.api_url}  (documentation at /docs)")
        if self._addresses.dashboard_url:
            self._say(f"  Dashboard  {self._addresses.dashboard_url}")
        self._say(f"  Token      in {self._folder.token_file}")
        self._say(f"  Logs       in {self._folder.logs}")

    def _choose_addresses(self, database_url: str, broker_url: str) -> Addresses:
        api = self._choose_port("API", self._wishes.api_port, frozenset())
        wanted = self._wishes.dashboard_port
        dashboard = None if wanted is None else self._choose_port("dashboard", wanted, frozenset({api}))
        return Addresses(database_url, broker_url, api, dashboard)

    def _choose_port(self, what: str, wanted: int, without: frozenset[int]) -> int:
        try:
            port = ports.next_free_port(wanted, without=without)
        except ports.NoFreePort as error:
            raise StackFailed(f"the {what} can't be started: {error}") from None
        if wanted not in (0, port):
            self._say(f"Port {wanted} is taken; the {what} gets {port}.")
        return port

    def _workers(self, programs: Programs) -> list[Program]:
        found, remark = devices(self._wishes.workers)
        if remark:
            self._say(f"Note: {remark}.")
        share = None
        if len(found) > 1 and "ROTBENCH_TRAINER_THREADS" not in os.environ:
            share = max(1, (os.cpu_count() or 1) // len(found))
        return [programs.worker(device, threads=share) for device in found]

    def _launch(self, service: Service) -> None:
        if self._signalled_at is not None:
            raise _StopWanted
        self._say(f"Starting {service.name}")
        kept = Kept(service)
        self._kept.append(kept)
        try:
            kept.start()
        except (ServerUnavailable, OSError) as error:
            raise StackFailed(f"{service.name} can't be started: {error}") from error
        self._describe()

    def _migrate(self, program: Program) -> None:
        self._launch(program)
        self._wait_until("the schema is up to date", [], lambda: not program.alive())
        if program.process is None or program.process.returncode != 0:
            raise StackFailed(self._last_words(program.name))
        self._kept = [kept for kept in self._kept if kept.service is not program]

    def _wait_until(self, what: str, needed: Sequence[Program], reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + READY_WITHIN_S
        while not reached():
            if self._signalled_at is not None:
                raise _StopWanted
            for program in needed:
                if not program.alive():
                    raise StackFailed(self._last_words(program.name))
            if time.monotonic() > deadline:
                raise StackFailed(f"waited {READY_WITHIN_S:.0f} s until {what}; the logs are in {self._folder.logs}")
            time.sleep(0.05)

    def _reporting(self) -> int:
        """How many workers of this instance have beaten."""
        assert self._addresses is not None
        answer = ask(f"{self._addresses.api_url}/v1/workers", self._folder.token())
        workers = answer["items"] if isinstance(answer, dict) and "items" in answer else []
        since = self._began_at - timedelta(seconds=1)
        return sum(datetime.fromisoformat(worker["started_at"]) >= since for worker in workers)

    def _look(self) -> None:
        """Notice what ended, and start again what is due."""
        for kept in self._kept:
            if (news := kept.look()) is None:
                continue
            name = kept.service.name
            if kept.given_up and name in INDISPENSABLE:
                raise StackFailed(f"{news}. {self._last_words(name)}")
            self._say(f"{news}. Its log: {self._folder.log_of(name)}")
            self._describe()

    def _stop(self) -> None:
        """End every process of this instance and nothing else: workers, then doors and windows, then servers."""
        self._folder.stack_file.unlink(missing_ok=True)
        by_name = {kept.service.name: kept.service for kept in self._kept}
        stop([service for name, service in by_name.items() if name.startswith("worker-")])
        for name in ("migrate", "api", "dashboard", "dispatcher"):
            stop([by_name[name]] if name in by_name else [])
        self._end_strays()
        for name in ("redis", "postgres"):
            stop([by_name[name]] if name in by_name else [])
        self._folder.instance_file.unlink(missing_ok=True)
        self._say("Stopped.")

    def _end_strays(self) -> None:
        """End what our processes started and lost, such as the trainer of a worker that was killed."""
        ours = {kept.service.process.pid for kept in self._kept if kept.service.process is not None}
        strays = [process for process in carriers(self._mark) if process.pid not in ours]
        for stray in strays:
            with suppress(psutil.Error):
                stray.terminate()
        _, alive = psutil.wait_procs(strays, timeout=GRACE_S)
        for stray in alive:
            with suppress(psutil.Error):
                stray.kill()

    def _describe(self) -> None:
        """Write down what runs: for the next instance at once, for readers when ready."""
        processes = {
            kept.service.name: kept.describe() | {"log": str(self._folder.log_of(kept.service.name))}
            for kept in self._kept
        }
        ours = Identity.of(os.getpid()).write()
        write_json(self._folder.instance_file, {"mark": self._mark, "supervisor": ours, "processes": processes})
        if self._ready and self._addresses is not None:
            described = {
                "api_url": self._addresses.api_url,
                "dashboard_url": self._addresses.dashboard_url,
                "token_file": str(self._folder.token_file),
                "pid": os.getpid(),
                "logs": str(self._folder.logs),
                "processes": processes,
            }
            write_json(self._folder.stack_file, described)

    def _last_words(self, name: str) -> str:
        log = self._folder.log_of(name)
        lines = log.read_text(errors="replace").splitlines()[-12:] if log.exists() else []
        return "\n  ".join([f"The end of {log}:", *lines])

    @contextmanager
    def _signals(self) -> Iterator[None]:
        wanted = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            wanted.append(signal.SIGHUP)
        before = {number: signal.signal(number, self._on_signal) for number in wanted}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: object) -> None:
        if self._signalled_at is None:
            self._signalled_at = time.monotonic()
        elif time.monotonic() - self._signalled_at > HURRY_AFTER_S:
            for kept in self._kept:
                process = kept.service.process
                if process is not None and process.returncode is None:
                    process.send_signal(signal.SIGQUIT if kept.service.name == "postgres" else signal.SIGKILL)
