"""Does a supervisor class every end of a trainer, keep its words and leave nothing running? With stand-in trainers."""

import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import psutil
import pytest
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session, sessionmaker

from rotrnn_core.records import Evaluation, Finished, Record, to_line
from store import attempts, logs, metrics, runs
from store.engine import make_engine, session_factory
from store.status import FailureClass, Status
from store.tables import RunRow
from worker import journal, memory
from worker.delivery import Fence
from worker.devices import Device
from worker.recovery import recover
from worker.settings import WorkerSettings
from worker.spool import Spool
from worker.supervisor import Supervisor
from worker.trainer_process import TRAINER

PREAMBLE = """
import argparse, json, os, signal, subprocess, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("--messages", type=int)
parser.add_argument("--parent", type=int)
pipe = parser.parse_args().messages
job = json.loads(sys.stdin.read())
def raw(line):
    os.write(pipe, line.encode() + b"\\n")
def say(record, **fields):
    raw(json.dumps({"record": record, **fields}, separators=(",", ":")))
def loss(step):
    say("Loss", step=step, loss=1.0 / step, accuracy=.5, learning_rate=.1, recurrence_learning_rate=.1,
        gradient_norm=float("nan"), tokens_per_s=1.0)
"""


@dataclass
class Bench:
    """Claims one run and supervises one stand-in trainer for it."""

    settings: WorkerSettings
    sessions: sessionmaker[Session]
    folder: Path
    run_id: UUID
    stopping: Callable[[], bool] = field(default=lambda: False)

    def supervise(
        self,
        script: str,
        *,
        once_training: Callable[[], None] | None = None,
        reached_by: sessionmaker[Session] | None = None,
        **changed: float,
    ) -> RunRow:
        """Supervise a trainer to its end; `once_training` is called when its first step is in the store."""
        program = self.folder / "trainer.py"
        program.write_text(PREAMBLE + textwrap.dedent(script))
        command = (sys.executable, str(program))
        return self.supervise_command(command, once_training=once_training, reached_by=reached_by, **changed)

    def supervise_command(
        self,
        command: Sequence[str],
        *,
        once_training: Callable[[], None] | None = None,
        reached_by: sessionmaker[Session] | None = None,
        **changed: float,
    ) -> RunRow:
        with self.sessions.begin() as session:
            claim = runs.claim(session, self.run_id, worker_id="w", lease_s=3, host="h", device="cpu:0")
        assert claim is not None
        settings = self.settings.model_copy(update=changed)
        device = Device("cpu:0", "h/cpu:0", "CPUs")
        supervisor = Supervisor(settings, reached_by or self.sessions, claim, device, self.stopping, command)
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(self._when_training, once_training) if once_training else None
            supervisor.run()
            if asked is not None:
                asked.result()
        return self.run

    def _when_training(self, act: Callable[[], None]) -> None:
        deadline = time.monotonic() + 20
        while self.run.step < 1:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        act()

    @property
    def run(self) -> RunRow:
        with self.sessions() as session:
            return runs.get(session, self.run_id)

    def ask(self, request: Callable[[Session, UUID], RunRow]) -> None:
        with self.sessions.begin() as session:
            request(session, self.run_id)

    @property
    def log(self) -> list[tuple[str, str]]:
        with self.sessions() as session:
            return [(line.level, line.message) for line in logs.tail(session, self.run_id, 10_000)]

    @property
    def steps(self) -> list[int]:
        with self.sessions() as session:
            series = metrics.read(session, self.run_id, ["train_loss"])
            return series[0].steps

    @property
    def spools(self) -> list[Path]:
        return list(self.settings.spool_dir.glob("*.jsonl"))


@pytest.fixture
def bench(engine: Engine, database_url: str, tmp_path: Path, queue_run: Callable[..., UUID]) -> Bench:
    settings = WorkerSettings(
        database_url=database_url,
        artifacts=tmp_path / "artifacts",
        data_dir=tmp_path / "data",
        spool_dir=tmp_path / "spool",
        beat_s=0.1,
        lease_s=3,
        ingest_s=0.05,
        stop_grace_s=1,
    )
    with session_factory(engine)() as session:
        run_id = queue_run(session, attempt_budget=2)
    return Bench(settings, session_factory(engine), tmp_path, run_id)


def test_a_finished_training_succeeds_and_leaves_no_spool(bench: Bench) -> None:
    run = bench.supervise("for step in range(1, 61): loss(step)\nsay('Finished', step=60)")
    assert (run.status, run.step, run.attempts_charged) == (Status.SUCCEEDED, 60, 0)
    assert bench.steps == list(range(1, 61))
    assert bench.spools == []


def test_words_after_the_last_record_are_kept(bench: Bench) -> None:
    bench.supervise("say('Finished', step=1)\nprint('hello\\0there', flush=True)\nsys.stderr.write('no newline')")
    assert {("info", "hello\ufffdthere"), ("warning", "no newline")} <= set(bench.log)


def test_a_divergence_is_a_result(bench: Bench) -> None:
    run = bench.supervise("loss(1)\nsay('Divergence', step=1, layer=2, kind='gradient')")
    assert (run.status, run.divergence_step, run.divergence_layer, run.divergence_kind) == (
        Status.DIVERGED, 1, 2, "gradient",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("end", "expected", "words"),
    [
        ("say('Failure', failure_class='out_of_memory', reason='MemoryError')", "out_of_memory", "MemoryError"),
        ("say('Failure', failure_class='data_missing', reason='no file x')", "data_missing", "no file x"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "code_error", "signal 11"),
        ("sys.stderr.write('last words'); sys.exit(3)", "code_error", "code 3"),
    ],
)
def test_an_end_that_is_no_use_to_repeat_fails_with_its_class(
    bench: Bench, end: str, expected: str, words: str
) -> None:
    run = bench.supervise(f"loss(1)\n{end}")
    assert (run.status, run.failure_class) == (Status.FAILED, FailureClass(expected))
    assert run.reason is not None
    assert words in run.reason
    assert bench.steps == [1]


def test_a_killed_trainer_is_tried_again_until_the_budget_is_spent(bench: Bench) -> None:
    kill = "loss(1)\nos.kill(os.getpid(), signal.SIGKILL)"
    assert bench.supervise(kill).status is Status.QUEUED
    with bench.sessions.begin() as session:
        session.execute(text("UPDATE runs SET not_before = now()"))
    run = bench.supervise(kill)
    assert (run.status, run.failure_class, run.attempts_charged) == (Status.FAILED, FailureClass.WORKER_LOST, 2)


def test_a_kill_for_want_of_memory_is_told_from_others(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([4, 5])
    monkeypatch.setattr(memory, "kills", lambda: next(counts))
    run = bench.supervise("os.kill(os.getpid(), signal.SIGKILL)")
    assert (run.status, run.failure_class) == (Status.FAILED, FailureClass.OUT_OF_MEMORY)


def test_what_is_no_message_is_logged_and_training_goes_on(bench: Bench) -> None:
    run = bench.supervise(
        """
        raw("what?"); raw('{"record":"Loss"}'); raw('{"record":"Wrong"}'); raw("[1]"); raw('{"record":"Log"')
        os.write(pipe, bytes([255, 10]))
        loss(1)
        say("Finished", step=1)
        """
    )
    assert run.status is Status.SUCCEEDED
    assert sum("no message" in message for _, message in bench.log) == 6


def test_a_flood_of_text_is_cut_and_counted(bench: Bench) -> None:
    bench.supervise("for n in range(50_000): print('line', n)\nprint('x' * 100_000)\nsay('Finished', step=1)")
    lines = [message for _, message in bench.log if message.startswith("line")]
    assert journal.BURST <= len(lines) + 1 < journal.BURST + 2000
    assert any("lines left out" in message for _, message in bench.log)


def test_no_progress_is_a_stall(bench: Bench) -> None:
    began = time.monotonic()
    run = bench.supervise("loss(7)\nprint('still here', flush=True)\ntime.sleep(60)", stall_timeout_s=1.0)
    assert time.monotonic() - began < 55, "the trainer's own end was waited for"
    assert run.status is Status.QUEUED
    with bench.sessions() as session:
        (attempt,) = attempts.read(session, bench.run_id)
    assert attempt.failure_class is FailureClass.STALLED
    assert attempt.reason == "no progress for 1 s after step 7"


def test_a_stopped_trainer_is_a_stall(bench: Bench) -> None:
    bench.supervise("loss(1)\nos.kill(os.getpid(), signal.SIGSTOP)", stall_timeout_s=1.0)
    with bench.sessions() as session:
        assert attempts.read(session, bench.run_id)[0].failure_class is FailureClass.STALLED


def test_an_attempt_past_its_deadline_ends_with_a_checkpoint_and_fails(bench: Bench) -> None:
    run = bench.supervise(
        """
        stop = []
        signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
        step = 0
        while not stop:
            step += 1
            loss(step)
            time.sleep(.05)
        say("Checkpoint", step=step, path=job["checkpoint_dir"] + "/step.pt", sha256="0", size_bytes=1)
        """,
        run_deadline_s=1.0,
    )
    assert (run.status, run.failure_class) == (Status.FAILED, FailureClass.TIMEOUT)
    with bench.sessions() as session:
        (path,) = session.execute(text("SELECT path FROM checkpoints")).scalars()
    assert path == f"runs/{run.id}/attempt-1/step.pt"


STUBBORN = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("child", child.pid, flush=True)
loss(1)
time.sleep(600)
"""


def test_a_trainer_that_does_not_stop_is_killed_with_its_descendants(bench: Bench) -> None:
    began = time.monotonic()
    run = bench.supervise(STUBBORN, once_training=lambda: bench.ask(runs.request_cancel))
    assert run.status is Status.CANCELLED
    assert time.monotonic() - began < 300, "the trainer's own end was waited for"
    (child,) = [int(message.split()[1]) for _, message in bench.log if message.startswith("child")]
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_a_lost_lease_ends_the_trainer_and_nothing_more_is_written(bench: Bench) -> None:
    def another_takes_it() -> None:
        with bench.sessions.begin() as session:
            session.execute(text("UPDATE runs SET lease_expires_at = now() - interval '1 s'"))
            assert runs.reap(session) == [bench.run_id]
            session.execute(text("UPDATE runs SET not_before = now()"))
            assert runs.claim(session, bench.run_id, worker_id="other", lease_s=60, host="h2", device="cpu:0")

    run = bench.supervise(
        "for step in range(1, 10_000): loss(step); time.sleep(.01)", once_training=another_takes_it, beat_s=1.0
    )
    assert (run.status, run.attempt, run.worker_id) == (Status.RUNNING, 2, "other")
    with bench.sessions() as session:
        stored = session.execute(text("SELECT max(step) FROM metrics WHERE attempt = 1")).scalar_one()
    assert stored < 9_999
    assert bench.spools == []


def test_a_record_that_the_store_refuses_fails_the_run(bench: Bench) -> None:
    run = bench.supervise("loss(1)\nloss(2**40)\ntime.sleep(600)")
    assert (run.status, run.failure_class) == (Status.FAILED, FailureClass.CODE_ERROR)
    assert run.reason is not None
    assert run.reason.startswith("the store refused a record")


def test_a_trainer_sees_none_of_our_addresses(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTBENCH_DATABASE_URL", "secret")
    bench.supervise("print([name for name in os.environ if 'ROTBENCH' in name])\nsay('Finished', step=1)")
    assert ("info", "[]") in bench.log


def test_a_trainer_that_cannot_be_started_loses_the_worker_not_the_run(bench: Bench) -> None:
    assert bench.supervise_command(["/no/such/program"]).status is Status.QUEUED


def test_data_that_cannot_be_had_fails_the_run_with_a_message(bench: Bench) -> None:
    """With the real trainer: the folder of the data is a file."""
    bench.settings.data_dir.write_text("not a folder")
    run = bench.supervise_command(TRAINER)
    assert (run.status, run.failure_class) == (Status.FAILED, FailureClass.DATA_MISSING)
    assert run.reason is not None
    assert str(bench.settings.data_dir) in run.reason
    assert "Traceback" not in run.reason
    assert any("Traceback" in message for _, message in bench.log)


def test_a_worker_told_to_stop_gives_the_run_back_uncharged(bench: Bench) -> None:
    told: list[bool] = []
    bench.stopping = lambda: bool(told)
    run = bench.supervise("loss(1)\ntime.sleep(600)", once_training=lambda: told.append(True))
    assert (run.status, run.attempt, run.attempts_charged) == (Status.QUEUED, 1, 0)


@pytest.fixture
def nowhere() -> Iterator[sessionmaker[Session]]:
    """Sessions on a database that does not answer."""
    engine = make_engine("postgresql+psycopg://nobody@127.0.0.1:9/none", application_name="tests", connect_timeout_s=1)
    yield session_factory(engine)
    engine.dispose()


def test_what_could_not_be_told_before_a_shutdown_is_told_by_the_next_worker(
    bench: Bench, nowhere: sessionmaker[Session]
) -> None:
    bench.stopping = lambda: any('"record":"Loss"' in spool.read_text() for spool in bench.spools)
    bench.supervise("loss(1)\ntime.sleep(600)", reached_by=nowhere)
    assert bench.run.status is Status.RUNNING
    recover(bench.sessions, bench.settings.spool_dir, bench.settings.artifacts)
    assert (bench.run.status, bench.run.attempts_charged) == (Status.QUEUED, 0)
    assert bench.steps == [1]
    assert bench.spools == []


@pytest.mark.parametrize(
    ("last_words", "expected", "charged"), [([], Status.QUEUED, 1), ([Finished(step=3)], Status.SUCCEEDED, 0)]
)
def test_the_spool_of_a_dead_supervisor_is_settled_once(
    bench: Bench, last_words: list[Record], expected: Status, charged: int
) -> None:
    with bench.sessions.begin() as session:
        claim = runs.claim(session, bench.run_id, worker_id="w", lease_s=3, host="h", device="cpu:0")
    assert claim is not None
    fence = Fence(claim.run_id, claim.attempt, claim.token)
    spool = Spool.create(bench.settings.spool_dir / "left.jsonl", fence.header())
    told = [Evaluation(step, "validation", 0.5, 0.25) for step in (1, 2, 3)]
    spool.append([("2026-01-01T00:00:00+00:00", to_line(record)) for record in [*told, *last_words]])
    recover(bench.sessions, bench.settings.spool_dir, bench.settings.artifacts)
    assert bench.run.status is Status.RUNNING, "a spool that is held is left alone"
    spool.close()
    recover(bench.sessions, bench.settings.spool_dir, bench.settings.artifacts)
    recover(bench.sessions, bench.settings.spool_dir, bench.settings.artifacts)
    assert (bench.run.status, bench.run.attempts_charged) == (expected, charged)
    with bench.sessions() as session:
        assert metrics.read(session, bench.run_id, ["validation_loss"])[0].steps == [1, 2, 3]


def test_the_spool_of_a_run_that_is_anothers_is_thrown_away(bench: Bench) -> None:
    with bench.sessions.begin() as session:
        claim = runs.claim(session, bench.run_id, worker_id="w", lease_s=3, host="h", device="cpu:0")
        assert claim is not None
        runs.give_back(session, claim.run_id, claim.attempt, claim.token, "meanwhile")
    spool = Spool.create(
        bench.settings.spool_dir / "left.jsonl", Fence(claim.run_id, claim.attempt, claim.token).header()
    )
    spool.append([("2026-01-01T00:00:00+00:00", to_line(Evaluation(1, "validation", 0.5, 0.25)))])
    spool.close()
    recover(bench.sessions, bench.settings.spool_dir, bench.settings.artifacts)
    assert bench.spools == []
    with bench.sessions() as session:
        assert session.execute(text("SELECT count(*) FROM metrics")).scalar_one() == 0
