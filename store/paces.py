"""How long will it take? Seconds per step that attempts took, those of a sweep or of networks like the wanted ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Float, and_, case, cast, extract, func, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Session

from store.status import LEASED, TERMINAL, Status
from store.tables import AttemptRow, RunRow, SweepRunRow


@dataclass(frozen=True)
class Pace:
    """What the last attempts of runs with equal task, model and batch size took together."""

    task: str
    model: dict[str, Any]
    batch_size: int
    seconds: float
    steps: int


def past(session: Session, cells: Sequence[tuple[str, str, int]]) -> list[Pace]:
    """The paces of runs of those tasks, cell labels and depths that have trained to their end."""
    model, batch_size = RunRow.config["model"], cast(RunRow.config["training"]["batch_size"], JSONB)
    found = session.execute(
        select(RunRow.task, model, batch_size, func.sum(_trained_s()), func.sum(_steps()))
        .join(AttemptRow, _present())
        .where(
            RunRow.task.in_({task for task, _, _ in cells}),
            RunRow.cell.in_({cell for _, cell, _ in cells}),
            RunRow.depth.in_({depth for _, _, depth in cells}),
            RunRow.status.in_((Status.SUCCEEDED, Status.DIVERGED)),
            AttemptRow.training_started_at.is_not(None),
            _steps() > 0,
        )
        .group_by(RunRow.task, model, batch_size)
    )
    return [Pace(*row) for row in found]


def seconds_left(session: Session, sweep_ids: Sequence[UUID]) -> dict[UUID, float]:
    """Estimated time to the end of those sweeps of which a run trains now, if as many go on training at once.

    What is left of each run is taken at the pace of the sweep's runs of its cell and depth, or of all of them.
    """
    trains = and_(RunRow.status.in_(LEASED), AttemptRow.training_started_at.is_not(None))
    begun = and_(AttemptRow.training_started_at.is_not(None), _steps() > 0)
    found = session.execute(
        select(
            SweepRunRow.sweep_id,
            func.coalesce(func.sum(_trained_s()).filter(begun), 0.0),
            func.coalesce(func.sum(_steps()).filter(begun), 0),
            func.sum(case((RunRow.status.in_(TERMINAL), 0), else_=RunRow.total_steps - RunRow.step)),
            func.count().filter(trains),
        )
        .join(RunRow, RunRow.id == SweepRunRow.run_id)
        .outerjoin(AttemptRow, _present())
        .where(SweepRunRow.sweep_id.in_(sweep_ids))
        .group_by(SweepRunRow.sweep_id, RunRow.cell, RunRow.depth)
    ).all()
    left: dict[UUID, float] = {}
    for sweep_id in sweep_ids:
        parts = [row[1:] for row in found if row[0] == sweep_id]
        seconds, steps, _, training = (sum(column) for column in zip(*parts, strict=True)) if parts else (0, 0, 0, 0)
        if steps and training:
            paces = ((own / done if done else seconds / steps, remaining) for own, done, remaining, _ in parts)
            left[sweep_id] = float(sum(pace * remaining for pace, remaining in paces) / training)
    return left


def _present() -> ColumnElement[bool]:
    return and_(AttemptRow.run_id == RunRow.id, AttemptRow.number == RunRow.attempt)


def _trained_s() -> ColumnElement[float]:
    ended = func.coalesce(AttemptRow.ended_at, func.clock_timestamp())
    return cast(extract("epoch", ended - AttemptRow.training_started_at), Float)


def _steps() -> ColumnElement[int]:
    return RunRow.step - AttemptRow.resumed_from_step
