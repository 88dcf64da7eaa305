"""Is this worker there? A thread of its main process that beats for its device, idle or busy, and watches over it."""

import os
import signal
import threading
from collections.abc import Callable
from uuid import UUID

import structlog
from celery import Celery
from celery.worker import state
from sqlalchemy.orm import Session, sessionmaker

from store.errors import DeviceTaken
from worker import broker
from worker.delivery import first_line, is_away
from worker.recovery import recover
from worker.settings import WorkerSettings

WEDGED_AFTER_BEATS = 4


class Presence(threading.Thread):
    """Beats until it is told to stop.

    Args:
        settings: The worker's.
        app: Whose queue is looked at.
        sessions: Of an engine made in this process.
        beat: Writes the worker's row, with the run that it works on.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        app: Celery,
        sessions: sessionmaker[Session],
        beat: Callable[[Session, UUID | None], None],
    ) -> None:
        super().__init__(name="presence", daemon=True)
        self._settings = settings
        self._app = app
        self._sessions = sessions
        self._beat = beat
        self._stopping = threading.Event()
        self._log = structlog.get_logger()
        self._idle_beats = 0
        self._away = False
        self.retiring = False
        """Set once the worker takes no more work and is right not to."""

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        self.join()

    def run(self) -> None:
        """Beat, settle what dead supervisors left, and look whether the worker still takes work."""
        while True:
            self._once()
            if self._stopping.wait(self._settings.beat_s):
                return

    def _once(self) -> None:
        try:
            with self._sessions.begin() as session:
                self._beat(session, current_run())
            recover(self._sessions, self._settings.spool_dir, self._settings.artifacts)
            self._away = False
        except DeviceTaken as error:
            self._give_up("another worker holds this device", str(error))
        except Exception as error:  # noqa: BLE001 - one failed beat must not end all later ones
            if not is_away(error):
                self._log.exception("the beat failed")
            elif not self._away:
                self._log.warning("the database is away", error=first_line(error))
                self._away = True
        self._watch_queue()

    def _watch_queue(self) -> None:
        """End a worker that is idle beat after beat while hints wait: it has lost its broker without knowing it."""
        try:
            stuck = not self.retiring and current_run() is None and broker.waiting(self._app) > 0
        except broker.BrokerAway:
            stuck = False
        self._idle_beats = self._idle_beats + 1 if stuck else 0
        if self._idle_beats > WEDGED_AFTER_BEATS:
            self._give_up("idle while the queue is not empty", f"for {WEDGED_AFTER_BEATS} beats")

    def _give_up(self, what: str, detail: str) -> None:
        self._log.error(what, detail=detail, then="this worker stops; whoever started it starts another")
        self._idle_beats = 0
        os.kill(os.getpid(), signal.SIGTERM)


def current_run() -> UUID | None:
    """The run that this worker's message names, if it has one."""
    for request in tuple(state.active_requests):
        return UUID(request.args[0])
    return None
