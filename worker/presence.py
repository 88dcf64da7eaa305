"""Is this worker there? A thread of its main process that beats for its device, idle or busy, and watches over it."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Collection, Set
from uuid import UUID

import structlog
from celery import Celery
from celery.worker import state
from celery.worker.consumer import Consumer
from celery.worker.request import Request
from sqlalchemy.orm import Session, sessionmaker

from rotrnn_core.tasks.registry import at_hand
from store import deletions, runs
from store.errors import DeviceTaken
from worker import artifacts, broker
from worker.delivery import first_line, is_away
from worker.recovery import recover
from worker.settings import WorkerSettings

WEDGED_AFTER_BEATS = 4
TIDY_EVERY_BEATS = 20


class Presence(threading.Thread):
    """Beats until it is told to stop.

    Args:
        settings: The worker's.
        app: Whose queues are looked at.
        consumer: What takes messages, in the main thread; it is told which queues to take from.
        sessions: Of an engine made in this process.
        worker_id: The worker's name in the store.
        beat: Writes the worker's row, with the run that it works on.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        app: Celery,
        consumer: Consumer,
        sessions: sessionmaker[Session],
        worker_id: str,
        beat: Callable[[Session, UUID | None], None],
    ) -> None:
        super().__init__(name="presence", daemon=True)
        self._settings = settings
        self._app = app
        self._consumer = consumer
        self._sessions = sessions
        self._worker_id = worker_id
        self._beat = beat
        self._stopping = threading.Event()
        self._log = structlog.get_logger()
        self._queues: tuple[str, ...] = (broker.QUEUE,)
        self._idle_beats = self._lost_beats = self._beats = 0
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
            self._follow_data()
            self._watch_child()
            self._tidy()
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

    def _follow_data(self) -> None:
        """Take from the queues of the data that are here now, and from no others."""
        self._queues = tuple(map(broker.queue_of, (None, *at_hand(self._settings.data_dir))))
        self._consumer.call_soon(take_from, self._consumer, frozenset(self._queues))

    def _watch_child(self) -> None:
        """Kill a pool child that still has a run beat after beat though its lease is gone: it stands still for good."""
        request = current_request()
        if request is not None:
            with self._sessions.begin() as session:
                request = None if runs.is_held_by(session, UUID(request.args[0]), self._worker_id) else request
        self._lost_beats = self._lost_beats + 1 if request is not None else 0
        if request is not None and self._lost_beats > WEDGED_AFTER_BEATS and request.worker_pid:
            self._log.error("the pool child stands still without a lease", then="it is killed", pid=request.worker_pid)
            self._lost_beats = 0
            with contextlib.suppress(ProcessLookupError):
                os.kill(request.worker_pid, signal.SIGKILL)

    def _tidy(self) -> None:
        """Now and then remove what deleted runs have left."""
        if self._beats % TIDY_EVERY_BEATS == 0:
            try:
                gone = artifacts.discard(self._settings.artifacts, self._deleted)
            except Exception as error:  # noqa: BLE001 - a store of artifacts that refuses must not end the beats
                self._log.warning("what deleted runs left could not be removed", error=first_line(error))
            else:
                if gone:
                    self._log.info("the files of deleted runs are removed", runs=[str(run_id) for run_id in gone])
        self._beats += 1

    def _deleted(self, run_ids: Collection[UUID]) -> Collection[UUID]:
        with self._sessions.begin() as session:
            return deletions.among(session, run_ids)

    def _watch_queue(self) -> None:
        """End a worker that is idle beat after beat while hints wait: it has lost its broker without knowing it."""
        try:
            stuck = not self.retiring and current_run() is None and broker.waiting(self._app, *self._queues) > 0
        except broker.BrokerAway:
            stuck = False
        self._idle_beats = self._idle_beats + 1 if stuck else 0
        if self._idle_beats > WEDGED_AFTER_BEATS:
            self._give_up("idle while the queue is not empty", f"for {WEDGED_AFTER_BEATS} beats")

    def _give_up(self, what: str, detail: str) -> None:
        self._log.error(what, detail=detail, then="this worker stops; whoever started it starts another")
        self._idle_beats = 0
        os.kill(os.getpid(), signal.SIGTERM)


def take_from(consumer: Consumer, queues: Set[str]) -> None:
    """Let a worker take messages from exactly these queues; one that is connecting is told again at the next beat."""
    if consumer.task_consumer is None:
        return
    taken = {queue.name for queue in consumer.task_consumer.queues}
    for queue in sorted(queues - taken):
        consumer.add_task_queue(queue)
    for queue in sorted(taken - queues):
        consumer.cancel_task_queue(queue)


def current_request() -> Request | None:
    """The message that this worker's child is at, if any."""
    return next(iter(tuple(state.active_requests)), None)


def current_run() -> UUID | None:
    """The run that this worker's message names, if it has one."""
    request = current_request()
    return None if request is None else UUID(request.args[0])
