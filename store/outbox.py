"""Which hints must still be published? Rows written with the change that they announce, taken by the dispatcher."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import delete, exists, func, insert, literal, or_, select, text, update
from sqlalchemy.orm import Session

from store.status import Status
from store.tables import OutboxRow, RunRow


@dataclass(frozen=True)
class Hint:
    """One message to publish: only the run's id; its priority and the data that the run needs say where to."""

    id: int
    run_id: UUID
    priority: int
    needs_data: str | None = None


def take(session: Session, limit: int = 100) -> list[Hint]:
    """Unpublished hints of queued runs whose time has come, highest priority first, locked until the commit.

    Rows that another dispatcher holds are skipped.
    """
    found = session.execute(
        select(OutboxRow.id, OutboxRow.run_id, OutboxRow.priority, RunRow.needs_data)
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
    return [Hint(*row) for row in found]


def mark_published(session: Session, ids: Sequence[int]) -> None:
    """Note that these hints are with the broker."""
    session.execute(
        update(OutboxRow).where(OutboxRow.id.in_(ids)).values(published_at=func.clock_timestamp()),
        execution_options={"synchronize_session": False},
    )


def waiting(session: Session) -> int:
    """How many runs wait for a worker, whatever they need."""
    return sum(waiting_for(session).values())


def waiting_for(session: Session) -> dict[str | None, int]:
    """How many runs wait for a worker, queued, due and with their hint published, by the data that they need."""
    unpublished = exists().where(OutboxRow.run_id == RunRow.id, OutboxRow.published_at.is_(None))
    due = (RunRow.status == Status.QUEUED) & (RunRow.not_before <= func.clock_timestamp())
    counts = select(RunRow.needs_data, func.count()).where(due, ~unpublished).group_by(RunRow.needs_data)
    return {row[0]: row[1] for row in session.execute(counts)}


def sweep(session: Session, older_than_s: float, needs_data: Collection[str | None] | None = None) -> int:
    """Write a new hint for each run that has waited too long since its last one, and drop hints of no more use.

    Args:
        older_than_s: So long is too long.
        needs_data: Only runs that need one of these data; None among them stands for runs that need none.

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
    if needs_data is not None:
        named = RunRow.needs_data.in_([name for name in needs_data if name is not None])
        forgotten = forgotten.where(named | RunRow.needs_data.is_(None) if None in needs_data else named)
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
