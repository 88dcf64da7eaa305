"""What do the tests of the store share? A scene: runs in any state, made only by the store's own functions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine, delete, func, select, update
from sqlalchemy.orm import Session, sessionmaker

from rotrnn_core import records
from store import ingest, runs
from store.engine import make_engine, session_factory
from store.status import FailureClass, Status
from store.tables import Base, RunRow

RUN = runs.NewRun(
    config={"task": {"name": "listops-short"}, "training": {"seed": 0}},
    config_hash="hash",
    cell="rotrnn",
    task="listops-short",
    depth=2,
    seed=0,
    total_steps=100,
)
STARTED = records.Started(
    step=0, total_steps=100, parameter_count=1234, device="cpu", profile_positions=(1, 2, 4), environment={"torch": "2"}
)
NORMS = records.HiddenNorms(
    step=0,
    statistic="relative",
    mean=(1.0, 2.0),
    deviation=(0.1, 0.2),
    minimum=(0.5, 0.5),
    maximum=(1.5, 2.5),
    non_finite=(0, 0),
    profile=((1.0, 1.5, 2.0), (2.0, 2.5, 3.0)),
)


@dataclass(frozen=True)
class Scene:
    """Short words for what the tests do again and again; each of them commits."""

    session: Session

    def new(self, **changes: Any) -> runs.NewRun:
        """A run to be added."""
        return replace(RUN, **changes)

    def add(self, *, priority: int = 5, attempt_budget: int = 3, **changes: Any) -> UUID:
        """A queued run."""
        (run_id,) = runs.add_many(self.session, [self.new(**changes)], priority=priority, attempt_budget=attempt_budget)
        self.session.commit()
        return run_id

    def claim(self, run_id: UUID, worker_id: str = "w") -> runs.Claim:
        """The claim of a queued run."""
        claim = runs.claim(self.session, run_id, worker_id=worker_id, lease_s=60, host="host", device="cpu")
        assert claim is not None
        self.session.commit()
        return claim

    def claimed(self, **changes: Any) -> runs.Claim:
        """The claim of a new run."""
        return self.claim(self.add(**changes))

    def finish(self, claim: runs.Claim, status: Status, failure_class: FailureClass | None = None) -> Status:
        """The end of an attempt."""
        divergence = records.Divergence(step=7, layer=1, kind="activation") if status is Status.DIVERGED else None
        ended = runs.finish(
            self.session,
            claim.run_id,
            claim.attempt,
            claim.token,
            status=status,
            failure_class=failure_class,
            divergence=divergence,
        )
        self.session.commit()
        return ended

    def put(self, status: Status) -> UUID:
        """A new run in any state."""
        run_id = self.add()
        if status is Status.PAUSED:
            runs.request_pause(self.session, run_id)
        elif status is Status.CANCELLED:
            runs.request_cancel(self.session, run_id)
        elif status is not Status.QUEUED:
            claim = self.claim(run_id)
            if status is Status.CANCELLING:
                runs.request_cancel(self.session, run_id)
            elif status is not Status.RUNNING:
                self.finish(claim, status, FailureClass.CODE_ERROR if status is Status.FAILED else None)
        self.session.commit()
        assert self.status(run_id) is status
        return run_id

    def status(self, run_id: UUID) -> Status:
        """The run's state as it is in the database."""
        return self.session.scalars(select(RunRow.status).where(RunRow.id == run_id)).one()

    def write(self, claim: runs.Claim, **batch: Any) -> None:
        """A batch of records."""
        ingest.write(self.session, claim.run_id, claim.attempt, claim.token, ingest.Batch(**batch))
        self.session.commit()

    def start(self, claim: runs.Claim, step: int = 0) -> None:
        """The first record of an attempt."""
        self.write(claim, started=replace(STARTED, step=step))

    def norms(self, **changes: Any) -> records.HiddenNorms:
        """Hidden norms to write."""
        return replace(NORMS, **changes)

    def expire(self, run_id: UUID) -> None:
        """The run's lease lies in the past."""
        past = func.clock_timestamp() - func.make_interval(0, 0, 0, 0, 0, 1)
        self.session.execute(update(RunRow).where(RunRow.id == run_id).values(lease_expires_at=past))
        self.session.commit()

    def make_due(self, run_id: UUID) -> None:
        """The run's delay is over."""
        self.session.execute(update(RunRow).where(RunRow.id == run_id).values(not_before=func.clock_timestamp()))
        self.session.commit()


@pytest.fixture(scope="module")
def module_engine(make_database: Callable[[], str]) -> Iterator[Engine]:
    """An engine on one migrated database for all tests of a file."""
    engine = make_engine(make_database(), application_name="tests", pool_size=10)
    yield engine
    engine.dispose()


@pytest.fixture
def sessions(module_engine: Engine) -> sessionmaker[Session]:
    """Sessions on emptied tables, also for threads."""
    with module_engine.begin() as connection:
        for table in reversed(Base.metadata.sorted_tables):
            connection.execute(delete(table))
    return session_factory(module_engine)


@pytest.fixture
def scene(sessions: sessionmaker[Session]) -> Iterator[Scene]:
    """A scene on emptied tables; a property test makes runs of its own in each example."""
    with sessions() as session:
        yield Scene(session)
