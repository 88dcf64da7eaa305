"""Who tells the store how an attempt goes? One thread that beats and delivers, and outlives a database that is away."""

import threading
import time

import structlog
from sqlalchemy.orm import Session, sessionmaker

from store import runs
from store.errors import LeaseLost
from worker.delivery import Fence, deliver, first_line, is_away
from worker.spool import Spool
from worker.verdict import Intent

RETRY_AFTER_S = 1.0


class Courier(threading.Thread):
    """Beats and delivers until it is told to stop, or learns that the lease is lost or that the store refuses.

    Args:
        sessions: Of an engine made in this process.
        fence: The attempt.
        spool: Where the attempt's words wait.
        artifacts: strs of checkpoints are stored relative to it.
        beat_s: Pause between two beats.
        lease_s: What each beat asks for.
        ingest_s: Pause between two deliveries.
    """

    def __init__(
        self,
        sessions: sessionmaker[Session],
        fence: Fence,
        spool: Spool,
        *,
        artifacts: str,
        beat_s: float,
        lease_s: float,
        ingest_s: float,
    ) -> None:
        super().__init__(name="courier", daemon=True)
        self._sessions = sessions
        self._fence = fence
        self._spool = spool
        self._artifacts = artifacts
        self._beat_s = beat_s
        self._lease_s = lease_s
        self._ingest_s = ingest_s
        self._step: int | None = None
        self._seen_at = time.monotonic()
        self._stopping = threading.Event()
        self._nudge = threading.Event()
        self._log = structlog.get_logger().bind(run_id=str(fence.run_id), attempt=fence.attempt)
        self.asked: Intent | None = None
        """What the store wants of this attempt: CANCEL, PAUSE, or that it ends (LEASE_LOST, REFUSED)."""
        self.detail = ""

    def alive(self, step: int | None) -> None:
        """The supervisor's loop turns, and training is at `step`. Without this word beats cease after one lease."""
        self._step = step
        self._seen_at = time.monotonic()

    def hurry(self) -> None:
        """Deliver now what waits."""
        self._nudge.set()

    def stop(self) -> None:
        """End the thread after the delivery that it is at."""
        self._stopping.set()
        self._nudge.set()
        self.join()

    def run(self) -> None:
        """Beat and deliver."""
        next_beat = time.monotonic() + self._beat_s
        away_since: float | None = None
        while not self._stopping.is_set():
            try:
                if time.monotonic() >= next_beat and self._supervised():
                    self._beat()
                    next_beat = time.monotonic() + self._beat_s
                deliver(self._sessions, self._fence, self._spool, self._artifacts)
                if away_since is not None:
                    self._log.info("the database is back", away_s=round(time.monotonic() - away_since, 1))
                    away_since = None
                pause_s = self._ingest_s if self._spool.empty else 0.0
            except LeaseLost as error:
                return self._end(Intent.LEASE_LOST, str(error))
            except Exception as error:  # noqa: BLE001 - the edge of a thread: what is not understood ends the run
                if not is_away(error):
                    self._log.exception("the store refused")
                    return self._end(Intent.REFUSED, f"the store refused a record: {type(error).__name__}: {error}")
                if away_since is None:
                    away_since = time.monotonic()
                    self._log.warning("the database is away; training goes on", error=first_line(error))
                next_beat = 0.0
                pause_s = min(RETRY_AFTER_S, self._beat_s)
            self._nudge.wait(pause_s)
            self._nudge.clear()
        return None

    def _beat(self) -> None:
        fence = self._fence
        with self._sessions.begin() as session:
            beat = runs.beat(session, fence.run_id, fence.attempt, fence.token, step=self._step, lease_s=self._lease_s)
        if beat.cancel:
            self.asked = Intent.CANCEL
        elif beat.pause:
            self.asked = Intent.PAUSE

    def _supervised(self) -> bool:
        return time.monotonic() - self._seen_at < self._lease_s

    def _end(self, intent: Intent, detail: str) -> None:
        self.detail = detail
        self.asked = intent
