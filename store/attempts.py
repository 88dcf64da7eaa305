"""Who has worked on a run, and how did it go?"""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import extract, func, select
from sqlalchemy.orm import Session

from store.status import LEASED
from store.tables import AttemptRow, RunRow


def read(session: Session, run_id: UUID) -> list[AttemptRow]:
    """The run's attempts, first to last."""
    wanted = select(AttemptRow).where(AttemptRow.run_id == run_id).order_by(AttemptRow.number)
    return list(session.scalars(wanted.execution_options(populate_existing=True)))


def last(session: Session, run_ids: Sequence[UUID]) -> dict[UUID, AttemptRow]:
    """The present or last attempt of each run that has one."""
    wanted = select(AttemptRow).join(RunRow, (AttemptRow.run_id == RunRow.id) & (AttemptRow.number == RunRow.attempt))
    found = session.scalars(wanted.where(RunRow.id.in_(run_ids)).execution_options(populate_existing=True))
    return {row.run_id: row for row in found}


def seconds_left(session: Session, run_ids: Sequence[UUID]) -> dict[UUID, float]:
    """Estimated time to the last step of those runs that train now, from the pace of their present attempt."""
    trained_s = extract("epoch", func.clock_timestamp() - AttemptRow.training_started_at)
    done = RunRow.step - AttemptRow.resumed_from_step
    found = session.execute(
        select(RunRow.id, ((RunRow.total_steps - RunRow.step) * trained_s / done).label("seconds"))
        .join(AttemptRow, (AttemptRow.run_id == RunRow.id) & (AttemptRow.number == RunRow.attempt))
        .where(RunRow.id.in_(run_ids), RunRow.status.in_(LEASED), AttemptRow.training_started_at.is_not(None), done > 0)
    ).all()
    return {row.id: float(row.seconds) for row in found}
