"""How does the whole fleet stand? What a monitor asks for at each scrape, by a fixed number of queries."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Float, case, cast, extract, func, select, text
from sqlalchemy.orm import Session

from store.status import LEASED, Status
from store.tables import OutboxRow, RunRow, WorkerRow


@dataclass(frozen=True)
class Fleet:
    """Ages are in seconds by the database's clock, 0 where there is nothing to be old."""

    oldest_queued_s: float
    waiting_hints: int
    leases: int
    expired_leases: int
    shortest_lease_s: float
    workers: dict[str, int]
    oldest_beat_s: float
    inserted_rows: dict[str, int]


def read(session: Session, lease_s: float) -> Fleet:
    """The fleet as it is now; a worker whose last beat is older than a lease is unknown."""
    now = func.clock_timestamp()

    def seconds(span: Any) -> Any:
        return cast(extract("epoch", span), Float)

    queued = select(func.coalesce(func.max(seconds(now - RunRow.queued_at)), 0.0)).where(RunRow.status == Status.QUEUED)
    left = seconds(RunRow.lease_expires_at - now)
    leases = session.execute(
        select(func.count(), func.count().filter(left < 0), func.coalesce(func.min(left), 0.0)).where(
            RunRow.status.in_(LEASED)
        )
    ).one()
    age = seconds(now - WorkerRow.beat_at)
    state = case((age > lease_s, "unknown"), (WorkerRow.run_id.is_(None), "idle"), else_="busy")
    workers = session.execute(select(state, func.count(), func.max(age)).group_by(state)).all()
    # Counted by the server since its statistics were last reset, committed or not.
    inserted = session.execute(
        text(
            "SELECT relname, n_tup_ins FROM pg_stat_user_tables "
            "WHERE relname IN ('metrics', 'hidden_norms', 'logs', 'checkpoints', 'events')"
        )
    ).all()
    return Fleet(
        oldest_queued_s=session.scalar(queued) or 0.0,
        waiting_hints=session.scalar(select(func.count()).where(OutboxRow.published_at.is_(None))) or 0,
        leases=leases[0],
        expired_leases=leases[1],
        shortest_lease_s=leases[2],
        workers={"idle": 0, "busy": 0, "unknown": 0} | {row[0]: row[1] for row in workers},
        oldest_beat_s=max((row[2] for row in workers), default=0.0),
        inserted_rows={row[0]: row[1] for row in inserted},
    )
