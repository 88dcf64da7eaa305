"""What happened to a run? Its log of events, which only grows."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ARRAY, Uuid, any_, insert, literal, select
from sqlalchemy.orm import Session

from store.tables import EventRow, RunRow


def record(session: Session, run: RunRow, kind: str, message: str) -> None:
    """Add an event; the caller holds the lock of the run's row."""
    session.add(EventRow(run_id=run.id, kind=kind, attempt=run.attempt, message=message))


def read(session: Session, run_id: UUID, *, after: int = 0, limit: int = 1000) -> list[EventRow]:
    """Events with an id above `after`, oldest first."""
    wanted = select(EventRow).where(EventRow.run_id == run_id, EventRow.id > after).order_by(EventRow.id).limit(limit)
    return list(session.scalars(wanted))


def record_many(session: Session, run_ids: Sequence[UUID], kind: str, message: str) -> None:
    """Add the same event to many runs; the caller made them or holds their locks."""
    about = select(RunRow.id, literal(kind), RunRow.attempt, literal(message)).where(
        RunRow.id == any_(literal(list(run_ids), ARRAY(Uuid)))
    )
    session.execute(insert(EventRow).from_select(["run_id", "kind", "attempt", "message"], about))
