"""What are the real processes of the worker's tests? Dispatcher, workers and their kin, and what the store says."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
from sqlalchemy import Engine, func, select, text
from sqlalchemy.orm import Session
from trainings import WALL_CLOCK, add, bits, said

from rotrnn_core.config import RunConfig
from rotrnn_core.records import STATISTICS, Record
from store import attempts, checkpoints, events, hidden_norms, logs, metrics, runs, workers
from store.engine import make_engine, session_factory
from store.status import Outcome, Status
from store.tables import AttemptRow, CheckpointRow, RunRow
from store.workers import Heard
from worker import broker

ROOT = Path(__file__).parents[2]
QUICK = {
    "ROTBENCH_BEAT_S": "0.3",
    "ROTBENCH_LEASE_S": "2.5",
    "ROTBENCH_INGEST_S": "0.2",
    "ROTBENCH_REAP_INTERVAL_S": "0.2",
    "ROTBENCH_DISPATCH_INTERVAL_S": "0.1",
    "ROTBENCH_SWEEP_INTERVAL_S": "0.3",
    "ROTBENCH_SWEEP_AFTER_S": "2",
    "ROTBENCH_TRAINER_THREADS": "1",
    "ROTBENCH_STOP_GRACE_S": "15",
    "ROTBENCH_DEVICE": "cpu",
}
MARK = "WORKER_TEST"
"""In the environment of everything that a test starts, and of its descendants."""


@dataclass
class Service:
    """One database, one broker, one folder, and the processes that work on them."""

    database_url: str
    broker_url: str
    folder: Path
    data_dir: Path
    engine: Engine
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, *command: str, **settings: str) -> subprocess.Popen[bytes]:
        hooks = self.folder / "hooks"
        hooks.mkdir(exist_ok=True)
        shutil.copyfile(Path(__file__).with_name("standins.py"), hooks / "sitecustomize.py")
        environment = {
            **os.environ,
            **QUICK,
            MARK: self.mark,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(hooks), os.environ.get("PYTHONPATH")])),
            "WORKER_TEST_GATE": str(self.folder / "gate"),
            "ROTBENCH_DATABASE_URL": self.database_url,
            "ROTBENCH_BROKER_URL": self.broker_url,
            "ROTBENCH_ARTIFACTS": str(self.folder / "artifacts"),
            "ROTBENCH_DATA_DIR": str(self.data_dir),
            "ROTBENCH_SPOOL_DIR": str(self.folder / "spool"),
            **settings,
        }
        with self.log(name).open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.children[name] = child
        return child

    def start_dispatcher(self, **settings: str) -> subprocess.Popen[bytes]:
        return self.start("dispatcher", "worker.dispatcher", **settings)

    def start_worker(self, name: str = "worker", **settings: str) -> subprocess.Popen[bytes]:
        command = ("celery", "-A", "worker.app", "worker", "--pool", "prefork", "-c", "1")
        flags = ("--without-gossip", "--without-mingle", "--hostname", f"{name}@%h")
        return self.start(name, *command, *flags, **settings)

    def start_api(self, port: int) -> subprocess.Popen[bytes]:
        return self.start("api", "uvicorn", "api.main:app", "--host", "127.0.0.1", "--port", str(port))

    @contextlib.contextmanager
    def held(self, words: str) -> Iterator[psutil.Process]:
        """The process that comes to these words (see standins.py), standing still there until the block ends."""
        gate, reached = self.folder / "gate", self.folder / "gate.reached"
        unseen = self.folder / "gate.new"
        unseen.write_text(words)
        unseen.rename(gate)
        try:
            self.until(lambda: reached.exists() and reached.read_text(), f"somebody at {words!r}", 120)
            yield psutil.Process(int(reached.read_text()))
        finally:
            gate.unlink()
            reached.unlink(missing_ok=True)

    @contextlib.contextmanager
    def held_at_its_end(self, run_id: UUID) -> Iterator[psutil.Process]:
        """The pool child, in the middle of the transaction that stores the run's end, until the block ends."""
        waits = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
        with self.sessions() as session:
            with self.held(".partial"):
                self.until(lambda: self.run(run_id).step > 0, f"a step of {run_id}")
                session.execute(select(AttemptRow).where(AttemptRow.run_id == run_id).with_for_update()).all()
            self.until(lambda: session.scalar(waits), f"the end of {run_id}", 120)
            yield self.pool_child()

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def pool_child(self, name: str = "worker") -> psutil.Process:
        return until(lambda: next(iter(psutil.Process(self.children[name].pid).children()), None), "a pool child")

    def trainer(self, name: str = "worker") -> psutil.Process:
        return until(lambda: next(iter(self.pool_child(name).children()), None), "a trainer")

    def add(self, config: RunConfig | dict[str, Any], **fields: Any) -> UUID:
        with session_factory(self.engine)() as session:
            return add(session, config.to_dict() if isinstance(config, RunConfig) else config, **fields)

    def ask(self, request: Callable[[Session, UUID], RunRow], run_id: UUID) -> None:
        with session_factory(self.engine).begin() as session:
            request(session, run_id)

    def run(self, run_id: UUID) -> RunRow:
        with session_factory(self.engine)() as session:
            return runs.get(session, run_id)

    @contextlib.contextmanager
    def sessions(self) -> Iterator[Session]:
        with session_factory(self.engine).begin() as session:
            yield session

    def workers(self) -> list[Heard]:
        with self.sessions() as session:
            return workers.read(session)

    def checkpoints(self, run_id: UUID) -> list[CheckpointRow]:
        with self.sessions() as session:
            return checkpoints.newest_first(session, run_id)

    def until_idle(self) -> None:
        """Wait until no hint waits and no worker works."""
        app = broker.make_app(self.broker_url)

        def idle() -> bool:
            seen = self.workers()
            return bool(seen) and broker.waiting(app) == 0 and all(heard.worker.run_id is None for heard in seen)

        until(idle, "idle worker")
        until(idle, "idle worker")

    def until(self, look: Callable[[], Any], what: str, within_s: float = 60) -> Any:
        try:
            return until(look, what, within_s)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.tail()}") from None

    def attempts(self, run_id: UUID) -> list[AttemptRow]:
        with session_factory(self.engine)() as session:
            return attempts.read(session, run_id)

    def log_of(self, run_id: UUID) -> list[str]:
        with session_factory(self.engine)() as session:
            return [line.message for line in logs.tail(session, run_id, 1000)]

    def wait(self, run_id: UUID, *states: Status, within_s: float = 60) -> RunRow:
        """The run, once it is in one of the states."""
        self.until(lambda: self.run(run_id).status in states, f"{' or '.join(states)} of {run_id}", within_s)
        return self.run(run_id)

    def wait_for_step(self, run_id: UUID, step: int, within_s: float = 60) -> None:
        """Return once the store knows of so many steps."""
        self.until(lambda: self.run(run_id).step >= step, f"step {step} of {run_id}", within_s)

    def hold(self, run_id: UUID, step: int, name: str = "worker") -> psutil.Process:
        """The trainer, standing still once so many steps are in the store: the run can't end behind a test's back."""
        self.wait_for_step(run_id, step)
        trainer = self.trainer(name)
        trainer.suspend()
        assert self.run(run_id).status is Status.RUNNING, "the run was over before it could be held"
        return trainer

    def tail(self) -> str:
        return "\n".join(f"--- {path.name}\n{path.read_text()[-3000:]}" for path in sorted(self.folder.glob("*.log")))

    def holds_exactly(self, run_id: UUID, records: list[Record]) -> None:
        """Assert that the run's effective series are these records, bit for bit, each step once."""
        series, traces = said(records)
        with session_factory(self.engine)() as session:
            stored = {each.key: each for each in metrics.read(session, run_id)}
            assert set(stored) == set(series)
            for key, expected in series.items():
                assert list(stored[key].steps) == sorted(expected), key
                if key not in WALL_CLOCK:
                    assert bits(stored[key].values) == bits(expected[step] for step in stored[key].steps), key
            for trace in hidden_norms.read(session, run_id, STATISTICS, include_profile=True):
                of_step = {step: norms for (statistic, step), norms in traces.items() if statistic == trace.statistic}
                assert trace.steps == sorted(of_step), trace.statistic
                for place, step in enumerate(trace.steps):
                    for part in ("mean", "deviation", "minimum", "maximum"):
                        assert bits(getattr(trace, part)[place]) == bits(getattr(of_step[step], part)), (part, step)
                    assert tuple(trace.non_finite[place]) == of_step[step].non_finite
                    assert trace.profile is not None
                    kept, given = (
                        list(chain.from_iterable(each)) for each in (trace.profile[place], of_step[step].profile)
                    )
                    assert bits(kept, "f") == bits(given, "f"), step

    def keeps_its_promises(self, run_id: UUID) -> None:
        """Assert of a run that has succeeded what must hold whatever has happened to it, but for its numbers."""
        with self.sessions() as session:
            run = runs.get(session, run_id)
            tries = attempts.read(session, run_id)
            told = [event.kind for event in events.read(session, run_id)]
            open_leases = session.scalar(select(func.count()).where(RunRow.lease_token.is_not(None)))
        assert (run.status, run.step, open_leases) == (Status.SUCCEEDED, run.total_steps, 0)
        assert [each.number for each in tries] == list(range(1, run.attempt + 1))
        assert all(each.ended_at for each in tries)
        assert all(one.ended_at <= other.started_at for one, other in pairwise(tries)), "one holder at a time"
        assert [each.outcome for each in tries].count(Outcome.SUCCEEDED) == told.count("succeeded") == 1
        assert told[-1] == "succeeded", "a result stays"
        trainers = [process for process in self.kin() if "worker.trainer" in process.cmdline()]
        assert trainers == []

    def kin(self) -> list[psutil.Process]:
        """Every process that descends from ours, whoever its parent is now."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def only_left(self, *names: str) -> None:
        """Assert that of all that was started soon only these are still running."""
        pids = {self.children[name].pid for name in names}
        self.until(lambda: all(process.pid in pids for process in self.kin()), f"end of all but {names}", 20)

    def end(self) -> None:
        """Kill what was started: how each ends in good order is what tests are for."""
        for process in self.kin():
            with contextlib.suppress(psutil.Error):
                process.kill()
        for child in self.children.values():
            child.wait(60)


def gone(process: psutil.Process) -> bool:
    """Whether the process has ended."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def until(look: Callable[[], Any], what: str, within_s: float = 60) -> Any:
    """The first true answer of `look`."""
    deadline = time.monotonic() + within_s
    while not (found := look()):
        assert time.monotonic() < deadline, f"no {what} within {within_s:g} s"
        time.sleep(0.03)
    return found


@contextmanager
def opened(database_url: str, broker_url: str, folder: Path, data_dir: Path) -> Iterator[Service]:
    engine = make_engine(database_url, application_name="tests", pool_size=5)
    service = Service(database_url, broker_url, folder, data_dir, engine)
    try:
        yield service
    finally:
        service.end()
        engine.dispose()
