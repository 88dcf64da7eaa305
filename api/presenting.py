"""How is a stored run or sweep shown? Rows and what belongs to them, by a fixed number of queries per answer."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from api.schemas import Divergence, RunRead, SweepRead, SweepSummary
from store import attempts, metrics, sweeps
from store.status import Priority
from store.tables import RunRow, SweepRow

LATEST = ("train_loss", "validation_accuracy", "test_accuracy")


def run_reads(session: Session, rows: Sequence[RunRow]) -> list[RunRead]:
    """The runs in the order given."""
    ids = [row.id for row in rows]
    latest = metrics.latest(session, ids, LATEST)
    seconds_left = attempts.seconds_left(session, ids)
    return [_run_read(row, latest.get(row.id, {}), seconds_left.get(row.id)) for row in rows]


def run_read(session: Session, row: RunRow) -> RunRead:
    """One run."""
    (shown,) = run_reads(session, [row])
    return shown


def sweep_summaries(session: Session, rows: Sequence[SweepRow]) -> list[SweepSummary]:
    """The sweeps in the order given."""
    ids = [row.id for row in rows]
    counts = sweeps.counts(session, ids)
    return [
        SweepSummary(
            id=row.id,
            name=row.name,
            created_at=row.created_at,
            config=row.config,
            grid=row.grid,
            total=row.total,
            counts={status.value: number for status, number in counts[row.id].items()},
            reused=row.reused,
        )
        for row in rows
    ]


def sweep_read(session: Session, row: SweepRow) -> SweepRead:
    """One sweep with its runs."""
    (summary,) = sweep_summaries(session, [row])
    return SweepRead(**summary.model_dump(), runs=sweeps.run_ids(session, [row.id])[row.id])


def priority_name(priority: int) -> str:
    """The named level that a stored priority belongs to."""
    return max((p for p in Priority if p <= priority), default=Priority.LOW).name.lower()


def _run_read(row: RunRow, latest: dict[str, float], seconds_left: float | None) -> RunRead:
    divergence = None
    if row.divergence_step is not None:
        divergence = Divergence(step=row.divergence_step, layer=row.divergence_layer, kind=str(row.divergence_kind))
    return RunRead.model_validate(
        {name: getattr(row, name) for name in RunRead.model_fields if hasattr(row, name)}
        | {
            "priority": priority_name(row.priority),
            "divergence": divergence,
            "latest": latest,
            "seconds_left": seconds_left,
        }
    )
