"""What happened to a run? Its log of events, which only grows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import ARRAY, BigInteger, Uuid, any_, func, insert, literal, select, true
from sqlalchemy.orm import Session, aliased

from store.status import Status
from store.tables import EventRow, RunRow


@dataclass(frozen=True)
class Progress:
    """How far a run is, and the id of the last thing that happened to it."""

    status: Status
    step: int
    total_steps: int
    last_event: int


@dataclass(frozen=True)
class News:
    """What happened to each of several runs, oldest first, and how far each is; a deleted run stands in neither."""

    events: dict[UUID, list[EventRow]]
    progress: dict[UUID, Progress]


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


def since(session: Session, after: Mapping[UUID, int], *, limit: int = 500) -> News:
    """The events of each run with an id above the one given, at most so many of each, by two queries in all."""
    newest = (
        select(func.coalesce(func.max(EventRow.id), 0).label("id"))
        .where(EventRow.run_id == RunRow.id)
        .scalar_subquery()
    )
    progress = {
        row[0]: Progress(*row[1:])
        for row in session.execute(
            select(RunRow.id, RunRow.status, RunRow.step, RunRow.total_steps, newest).where(
                RunRow.id == any_(literal(list(after), ARRAY(Uuid)))
            )
        )
    }
    asked = (
        func.unnest(literal(list(after), ARRAY(Uuid)), literal(list(after.values()), ARRAY(BigInteger)))
        .table_valued("run_id", "after")
        .render_derived()
    )
    next_ones = (
        select(EventRow)
        .where(EventRow.run_id == asked.c.run_id, EventRow.id > asked.c.after)
        .order_by(EventRow.id)
        .limit(limit)
        .lateral()
    )
    event = aliased(EventRow, next_ones)
    happened: dict[UUID, list[EventRow]] = {}
    for row in session.scalars(
        select(event).select_from(asked).join(next_ones, true()).order_by(event.run_id, event.id)
    ):
        happened.setdefault(row.run_id, []).append(row)
    return News(happened, progress)
