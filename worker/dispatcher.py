"""Who hands the work out? `python -m worker.dispatcher`: outbox to broker, forgotten hints again, lost leases back.

Each duty has a thread of its own, so that a silent Redis delays no reaping. All of them may be done twice, and by
several dispatchers at once.
"""

import signal
import threading
import time
from collections.abc import Callable, Sequence

import structlog
from celery import Celery
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from store import data_waits, deletions, idempotency, outbox, runs, workers
from store.engine import limits_within, make_engine, session_factory
from worker import broker, logs
from worker.delivery import first_line, is_away
from worker.settings import DispatcherSettings

BATCH = 100
WATCH_INTERVAL_S = 30.0
FORGET_INTERVAL_S = 600.0
DELETIONS_KEPT_S = 30 * 86400.0


class Witness:
    """Whether this process has itself seen the database for a whole lease.

    While the database is away nobody can beat; who judges leases right after its return would take those of the living.

    Args:
        lease_s: How long a lease is.
        clock: Seconds that only grow.
    """

    def __init__(self, lease_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._lease_s = lease_s
        self._clock = clock
        self._since = self._last = float("-inf")

    def saw(self) -> None:
        """The database has just answered."""
        now = self._clock()
        if now - self._last > self._lease_s / 4:
            self._since = now
        self._last = now

    @property
    def may_judge(self) -> bool:
        """Whether there was no gap of a quarter of a lease during the last lease."""
        return self._last - self._since >= self._lease_s


class Dispatcher:
    """The duties.

    Args:
        settings: The dispatcher's.
        app: For publishing.
        sessions: Of this process's engine.
    """

    def __init__(self, settings: DispatcherSettings, app: Celery, sessions: sessionmaker[Session]) -> None:
        self._settings = settings
        self.app = app
        self._sessions = sessions
        self._witness = Witness(settings.lease_s)
        self._was_short: frozenset[str | None] = frozenset()
        self._lacking_since: dict[str, float] = {}
        self._log = structlog.get_logger()

    def dispatch(self) -> None:
        """Publish every hint whose time has come."""
        taken = BATCH
        while taken == BATCH:
            with self._sessions.begin() as session:
                hints = outbox.take(session, BATCH)
                broker.publish(self.app, hints)
                outbox.mark_published(session, [hint.id for hint in hints])
                self._tell_who_waits(session, hints)
            taken = len(hints)
            if hints:
                self._log.info("published", runs=[str(hint.run_id) for hint in hints])

    def _tell_who_waits(self, session: Session, hints: Sequence[outbox.Hint]) -> None:
        """Those of the runs just published whose data no living worker has."""
        wanting = {hint.run_id: hint.needs_data for hint in hints if hint.needs_data is not None}
        there = data_waits.stock(session, self._settings.lease_s) if wanting else None
        if there is not None:
            lacking = {run_id: name for run_id, name in wanting.items() if name not in there.names}
            data_waits.tell(session, lacking, there)

    def sweep(self) -> None:
        """Publish again what the broker has lost: twice in a row a queue held fewer hints than runs are waiting.

        Once may be a hint on its way from the broker to its claim. A queue that holds enough gets nothing more, or a
        long one would grow by its own length in each round.
        """
        held: dict[str | None, int] = {None: broker.waiting(self.app)}
        with self._sessions.begin() as session:
            needed = data_waits.needed(session)
        held |= {name: broker.waiting(self.app, broker.queue_of(name)) for name in needed}
        again = 0
        with self._sessions.begin() as session:
            waiting = outbox.waiting_for(session)
            short = frozenset(name for name in held if held[name] < waiting.get(name, 0))
            if lost := short & self._was_short:
                again = outbox.sweep(session, self._settings.sweep_after_s, lost)
        self._was_short = short
        if again:
            self._log.warning("hints were lost and are published again", runs=again)

    def reap(self) -> None:
        """Take the leases that have run out."""
        with self._sessions.begin() as session:
            session.execute(select(1))
            self._witness.saw()  # before it judges: what was seen before a gap says nothing about now
            lost = runs.reap(session, BATCH) if self._witness.may_judge else []
        if lost:
            self._log.warning("leases ran out", runs=[str(run_id) for run_id in lost])

    def give_up(self) -> None:
        """End the runs whose data no living worker has had for as long as this process has watched, and long enough.

        While no worker lives, nothing is known of data, and runs wait as all others do.
        """
        now = time.monotonic()
        with self._sessions.begin() as session:
            there = data_waits.stock(session, self._settings.lease_s)
            lacking = frozenset[str]() if there is None else data_waits.needed(session) - there.names
            self._lacking_since = {name: self._lacking_since.get(name, now) for name in lacking}
            patience = self._settings.data_wait_s
            ended = [
                run_id
                for name, since in self._lacking_since.items()
                if there is not None and now - since >= patience
                for run_id in data_waits.give_up(session, name, there, patience, BATCH)
            ]
        if ended:
            self._log.warning("runs end whose data no worker has", runs=[str(run_id) for run_id in ended])

    def watch(self) -> None:
        """Say when work waits and nobody is there to do it."""
        with self._sessions.begin() as session:
            waiting = outbox.waiting(session)
            alive = any(heard.beat_age_s < self._settings.lease_s for heard in workers.read(session))
        if waiting and not alive:
            self._log.warning("runs wait, and no worker was heard of for a lease", runs=waiting)

    def forget(self) -> None:
        """Drop old idempotency keys, and deleted runs whose files every worker has had time to remove."""
        with self._sessions.begin() as session:
            keys = idempotency.forget(session, self._settings.idempotency_kept_s)
            deletions.forget(session, DELETIONS_KEPT_S)
        if keys:
            self._log.info("old idempotency keys are forgotten", keys=keys)


class Duty(threading.Thread):
    """Does one thing again and again, whatever is away meanwhile, until it is told to stop."""

    def __init__(self, work: Callable[[], None], interval_s: float, stopping: threading.Event) -> None:
        super().__init__(name=work.__name__)
        self._work = work
        self._interval_s = interval_s
        self._stopping = stopping
        self._log = structlog.get_logger().bind(duty=work.__name__)

    def run(self) -> None:
        """Work, pause, work."""
        away = False
        while not self._stopping.is_set():
            try:
                self._work()
            except Exception as error:  # noqa: BLE001 - the edge: a duty never ends by an error
                if not isinstance(error, broker.BrokerAway) and not is_away(error):
                    self._log.exception("failed")
                elif not away:
                    self._log.warning("away", what=type(error).__name__, error=first_line(error))
                    away = True
            else:
                if away:
                    self._log.info("back")
                away = False
            self._stopping.wait(self._interval_s)


def main() -> None:
    """Run the duties until SIGTERM or SIGINT."""
    logs.configure()
    settings = DispatcherSettings()
    engine = make_engine(
        settings.database_url.get_secret_value(),
        application_name="rotbench dispatcher",
        pool_size=5,
        **limits_within(settings.lease_s),
    )
    dispatcher = Dispatcher(settings, broker.make_app(settings.broker_url.get_secret_value()), session_factory(engine))
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    duties = [
        Duty(dispatcher.dispatch, settings.dispatch_interval_s, stopping),
        Duty(dispatcher.sweep, settings.sweep_interval_s, stopping),
        Duty(dispatcher.reap, settings.reap_interval_s, stopping),
        Duty(dispatcher.give_up, settings.reap_interval_s, stopping),
        Duty(dispatcher.watch, WATCH_INTERVAL_S, stopping),
        Duty(dispatcher.forget, FORGET_INTERVAL_S, stopping),
    ]
    for duty in duties:
        duty.start()
    structlog.get_logger().info("dispatcher ready")
    for duty in duties:
        duty.join()
    engine.dispose()
    structlog.get_logger().info("dispatcher stopped")


if __name__ == "__main__":
    main()
