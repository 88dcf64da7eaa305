"""Which hints must still be published? Rows written with the change that they announce, taken by the dispatcher."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import delete, exists, func, insert, literal, or_, select, text, update
from sqlalchemy.orm import Session

from store.status import Status
from store.tables import OutboxRow, RunRow


@dataclass(frozen=True)
class Hint:
    """One message to publish: only the run's id and its priority."""

    id: int
    run_id: UUID
    priority: int


def take(session: Session, limit: int = 100) -> list[Hint]:
    """Unpublished hints of queued runs whose time has come, highest priority first, locked until the commit.

    Rows that another dispatcher holds are skipped.
    """
    found = session.execute(
        select(OutboxRow.id, OutboxRow.run_id, OutboxRow.priority)
        .join(RunRow, RunRow.id == OutboxRow.run_id)
        .where(
            OutboxRow.published_at.is_(None),
            RunRow.status == Status.QUEUED,
            RunRow.not_before <= func.clock_timestamp(),
        )
        .order_by(OutboxRow.priority.desc(), OutboxRow.id)
        .limit(limit)
        .with_for_update(of=OutboxRow, skip_locked=True)
    ).all()
    return [Hint(id, run_id, priority) for id, run_id, priority in found]


def mark_published(session: Session, ids: Sequence[int]) -> None:
    """Note that these hints are with the broker."""
    session.execute(
        update(OutboxRow).where(OutboxRow.id.in_(ids)).values(published_at=func.clock_timestamp()),
        execution_options={"synchronize_session": False},
    )


def waiting(session: Session) -> int:
    """How many runs wait for a worker: queued, due and with their hint published."""
    unpublished = exists().where(OutboxRow.run_id == RunRow.id, OutboxRow.published_at.is_(None))
    due = (RunRow.status == Status.QUEUED) & (RunRow.not_before <= func.clock_timestamp())
    return session.scalars(select(func.count()).select_from(RunRow).where(due, ~unpublished)).one()


def sweep(session: Session, older_than_s: float) -> int:
    """Write a new hint for each run that has waited too long since its last one, and drop hints of no more use.

    Returns:
        How many hints were written again.
    """
    long_ago = _ago(older_than_s)
    waiting = exists().where(
        OutboxRow.run_id == RunRow.id, or_(OutboxRow.published_at.is_(None), OutboxRow.published_at > long_ago)
    )
    forgotten = select(RunRow.id, RunRow.priority).where(
        RunRow.status == Status.QUEUED, RunRow.not_before <= long_ago, ~waiting
    )
    again = session.execute(
        insert(OutboxRow).from_select(["run_id", "priority"], forgotten).returning(OutboxRow.id)
    ).all()
    queued = exists().where(RunRow.id == OutboxRow.run_id, RunRow.status == Status.QUEUED)
    session.execute(
        delete(OutboxRow).where(or_(OutboxRow.published_at <= long_ago, OutboxRow.published_at.is_(None) & ~queued)),
        execution_options={"synchronize_session": False},
    )
    return len(again)


def _ago(seconds: float) -> Any:
    return func.clock_timestamp() - literal(seconds) * text("interval '1 second'")
