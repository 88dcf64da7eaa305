"""What may be thrown away, and how much is it? Runs that ended long ago in states that nobody keeps."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import ARRAY, Uuid, any_, func, literal, select, text
from sqlalchemy.orm import Session

from store.status import TERMINAL, Status
from store.tables import CheckpointRow, HiddenNormRow, LogRow, MetricBlockRow, RunRow


@dataclass(frozen=True)
class Weight:
    """What belongs to some runs."""

    points: int
    trace_rows: int
    log_lines: int
    checkpoints: int
    checkpoint_bytes: int


def ended_long_ago(session: Session, statuses: Collection[Status], older_than_s: float, limit: int) -> list[UUID]:
    """The runs that ended in one of the states more than so long ago, the oldest first, at most so many.

    Raises:
        ValueError: A run in one of the states has not ended.
    """
    if not TERMINAL.issuperset(statuses):
        raise ValueError(f"{sorted(set(statuses) - TERMINAL)} are no states in which a run has ended")
    long_ago = func.clock_timestamp() - literal(older_than_s) * text("interval '1 second'")
    wanted = select(RunRow.id).where(RunRow.status.in_(statuses), RunRow.finished_at < long_ago)
    return list(session.scalars(wanted.order_by(RunRow.finished_at, RunRow.id).limit(limit)))


def weigh(session: Session, run_ids: Sequence[UUID]) -> Weight:
    """How much the database holds of the runs, and how much the checkpoints that it names."""
    some = any_(literal(list(run_ids), ARRAY(Uuid)))
    blocks, norms, logs, kept = MetricBlockRow.run_id, HiddenNormRow.run_id, LogRow.run_id, CheckpointRow.run_id
    return Weight(
        points=session.scalar(select(func.coalesce(func.sum(MetricBlockRow.points), 0)).where(blocks == some)) or 0,
        trace_rows=session.scalar(select(func.count()).where(norms == some)) or 0,
        log_lines=session.scalar(select(func.count()).where(logs == some)) or 0,
        checkpoints=session.scalar(select(func.count()).where(kept == some)) or 0,
        checkpoint_bytes=int(
            session.scalar(select(func.coalesce(func.sum(CheckpointRow.size_bytes), 0)).where(kept == some)) or 0
        ),
    )
