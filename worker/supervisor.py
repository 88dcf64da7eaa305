"""Who watches over one attempt? A loop beside the trainer, in a process that never imports torch.

It hears the trainer, keeps every word in the spool, lets the courier tell the store, and ends the trainer when that was
asked, when it stalls, when its time is over or when the lease is lost.
"""

import dataclasses
import time
from collections.abc import Callable, Sequence

import structlog
from sqlalchemy.orm import Session, sessionmaker

from store.errors import LeaseLost
from store.leases import Claim
from store.status import FailureClass, Status
from worker import memory
from worker.account import Account
from worker.courier import RETRY_AFTER_S, Courier
from worker.delivery import Fence, conclude, first_line, is_away
from worker.devices import Device
from worker.messages import Failure, HandedBack, Job, StoredCheckpoint
from worker.places import absolute, folder_of
from worker.settings import WorkerSettings
from worker.spool import Spool
from worker.trainer_process import TRAINER, TrainerProcess
from worker.verdict import Abandon, Ending, Finish, GiveBack, Intent, Verdict, judge

TICK_S = 0.2
GATHER_S = 0.02
"""Words that come so close together are heard at once: each waking takes the processor from the training."""
_AT_ONCE = frozenset({Intent.LEASE_LOST, Intent.REFUSED, Intent.STALLED})
_FAULTS = _AT_ONCE | {Intent.TIMEOUT}


class Supervisor:
    """One attempt, from the claim to its end in the store.

    Args:
        settings: The worker's.
        sessions: Of an engine made in this process.
        claim: The run, claimed.
        device: Where it trains.
        stopping: Whether the worker was told to stop.
        command: How a trainer is started.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        sessions: sessionmaker[Session],
        claim: Claim,
        device: Device,
        stopping: Callable[[], bool],
        command: Sequence[str] = TRAINER,
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._claim = claim
        self._device = device
        self._stopping = stopping
        self._command = command
        self._fence = Fence(claim.run_id, claim.attempt, claim.token)
        self._log = structlog.get_logger().bind(run_id=str(claim.run_id), attempt=claim.attempt)
        self._account = Account()
        self._intent: Intent | None = None
        self._detail = ""
        self._kill_at: float | None = None
        self._give_up_at: float | None = None
        self._started_at = self._turned_at = time.monotonic()

    def run(self) -> None:
        """Train, and store how it ended; when the store stays away during a shutdown, leave that to the spool."""
        settings = self._settings
        try:
            spool = Spool.create(
                settings.spool_dir / f"{self._fence.run_id}-{self._fence.attempt}.jsonl", self._fence.header()
            )
        except OSError as error:
            self._log.exception("no spool")
            self._settle(Finish(Status.FAILED, FailureClass.WORKER_LOST, f"the worker could not spool: {error}"))
            return
        courier = Courier(
            self._sessions,
            self._fence,
            spool,
            artifacts=settings.artifacts,
            beat_s=settings.beat_s,
            lease_s=settings.lease_s,
            ingest_s=settings.ingest_s,
        )
        courier.start()
        try:
            ending = self._train(spool, courier)
            delivered = self._delivered(spool, courier)
        except Exception as error:  # noqa: BLE001 - the edge of the task: the run ends with its reason
            self._log.exception("the supervisor failed")
            failure = Failure(FailureClass.WORKER_LOST, f"the supervisor failed: {type(error).__name__}: {error}")
            ending, delivered = Ending(None, "", 1, failure=failure), True
        finally:
            courier.stop()
        if courier.asked in (Intent.LEASE_LOST, Intent.REFUSED):
            ending = dataclasses.replace(ending, intent=courier.asked, detail=courier.detail)
            delivered = True
        verdict = judge(ending)
        self._log.info("training ended", verdict=repr(verdict))
        if delivered and self._settle(verdict):
            spool.remove()
        else:
            self._leave(spool, verdict)

    def _train(self, spool: Spool, courier: Courier) -> Ending:
        memory_kills = memory.kills()
        try:
            trainer = TrainerProcess.start(self._command, self._job().to_json(), self._environment())
        except OSError as error:
            failure = Failure(FailureClass.WORKER_LOST, f"the trainer could not be started: {error}")
            return Ending(None, "", 1, failure=failure)
        self._account.say("info", f"attempt {self._fence.attempt} on {self._settings.host}, {self._device.name}")
        self._log.info("training started", trainer=trainer.pid, device=self._device.name)
        try:
            self._watch(trainer, spool, courier)
        finally:
            code = trainer.end()
        account = self._account
        account.end()
        memory_kills = memory.kills() - memory_kills
        return Ending(
            self._intent, self._detail, code, account.finished, account.divergence, account.failure, memory_kills
        )

    def _watch(self, trainer: TrainerProcess, spool: Spool, courier: Courier) -> None:
        while True:
            ended = trainer.ended  # asked before listening, so that its last words are heard
            if ended:
                heard = trainer.last_words()
            elif self._account.full:
                heard = []
                time.sleep(TICK_S)
            else:
                heard = trainer.listen(TICK_S)
            for said in heard:
                self._account.hear(said)
            self._account.keep(spool)
            courier.alive(self._account.step)
            if ended:
                return
            self._steer(trainer, courier)
            if heard:
                time.sleep(GATHER_S)

    def _steer(self, trainer: TrainerProcess, courier: Courier) -> None:
        now = time.monotonic()
        unwatched_s = max(0.0, now - self._turned_at - 5 * TICK_S)  # this process stood still: no fault of the trainer
        self._turned_at = now
        self._account.progress_at += unwatched_s
        intent, detail = self._wanted(courier, now)
        if intent is not None and (self._intent is None or intent in _AT_ONCE) and intent is not self._intent:
            self._intent, self._detail = intent, detail
            self._account.say("warning" if intent in _FAULTS else "info", detail)
            self._log.info("ending the trainer", intent=intent.name, detail=detail)
            if intent in _AT_ONCE:
                trainer.kill()
            else:
                trainer.ask_to_stop()
                self._kill_at = now + self._settings.stop_grace_s
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = None
            self._account.say("warning", f"the trainer did not stop within {self._settings.stop_grace_s:g} s: killed")
            trainer.kill()

    def _wanted(self, courier: Courier, now: float) -> tuple[Intent | None, str]:
        settings = self._settings
        if courier.asked is not None:
            return courier.asked, courier.detail or courier.asked.value
        if self._stopping():
            return Intent.SHUTDOWN, Intent.SHUTDOWN.value
        if settings.run_deadline_s is not None and now - self._started_at > settings.run_deadline_s:
            return Intent.TIMEOUT, f"the attempt took longer than its {settings.run_deadline_s:g} s"
        if now - self._account.progress_at > settings.stall_timeout_s:
            return (
                Intent.STALLED,
                f"no progress for {settings.stall_timeout_s:g} s after step {self._account.step or 0}",
            )
        return None, ""

    def _delivered(self, spool: Spool, courier: Courier) -> bool:
        """Wait until the store has everything; False when the worker has to stop before that."""
        self._account.keep(spool)
        courier.hurry()
        while courier.is_alive():
            self._account.keep(spool)
            courier.alive(self._account.step)
            if spool.empty and not self._account.waiting:
                return True
            if self._out_of_time():
                return False
            time.sleep(TICK_S / 10)
        return False

    def _settle(self, verdict: Verdict) -> bool:
        """Store the verdict, however long the store is away; False when the worker has to stop before that."""
        while not isinstance(verdict, Abandon):
            try:
                status = conclude(self._sessions, self._fence, verdict)
            except LeaseLost as error:
                self._log.warning("the end was not stored", reason=str(error))
                return True
            except Exception as error:  # noqa: BLE001 - the edge of the task
                if not is_away(error):
                    self._log.exception("the store refused the end; the lease will run out")
                    return True
                self._log.warning("the database is away; the end waits", error=first_line(error))
                if self._out_of_time():
                    return False
                time.sleep(RETRY_AFTER_S)
            else:
                self._log.info("attempt ended", status=status.value)
                return True
        return True

    def _leave(self, spool: Spool, verdict: Verdict) -> None:
        if isinstance(verdict, GiveBack):
            self._account.note(HandedBack(verdict.reason))
            self._account.keep(spool)
        spool.sync()
        spool.close()
        self._log.warning("the store is away; the rest waits in the spool", spool=str(spool.path))

    def _out_of_time(self) -> bool:
        if self._give_up_at is None and self._stopping():
            self._give_up_at = time.monotonic() + self._settings.stop_grace_s
        return self._give_up_at is not None and time.monotonic() >= self._give_up_at

    def _job(self) -> Job:
        artifacts, fence = self._settings.artifacts, self._fence
        return Job(
            config=self._claim.config,
            data_dir=str(self._settings.data_dir.absolute()),
            checkpoint_dir=folder_of(artifacts, fence.run_id, fence.attempt),
            checkpoints=tuple(
                StoredCheckpoint(row.step, absolute(artifacts, row.path), row.sha256) for row in self._claim.checkpoints
            ),
            threads=self._settings.threads,
        )

    def _environment(self) -> dict[str, str]:
        threads = str(self._settings.threads)
        return {
            "OMP_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
            "CUDA_VISIBLE_DEVICES": self._device.uuid if self._device.is_gpu else "",
            "PYTHONUNBUFFERED": "1",
        }
