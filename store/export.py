"""How does one read everything that was measured, however much it is? Run after run, in batches of bounded size.

No transaction is open between two batches, so that a slow reader holds no connection and blocks nobody.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ARRAY, Text, any_, func, literal, select, tuple_
from sqlalchemy.orm import Session, sessionmaker

from store import hidden_norms
from store.effective import windows
from store.engine import BINARY
from store.runs import Filters
from store.tables import MetricRow, RunRow

Sessions = sessionmaker[Session]


@dataclass(frozen=True)
class Identity:
    """What names a run in every row that is said of it."""

    run_id: UUID
    task: str
    cell: str
    depth: int
    seed: int


@dataclass(frozen=True)
class Chosen:
    """The runs of an export, oldest first, and when they were chosen, by the database's clock."""

    runs: list[Identity]
    at: datetime


@dataclass(frozen=True)
class Points:
    """Some of the effective points of a run, in order of key and step: a column each."""

    key: list[str]
    attempt: list[int]
    step: list[int]
    value: list[float]


@dataclass(frozen=True)
class Norms:
    """Some of the effective hidden norms of one statistic of a run, in order of step and layer: a column each."""

    layer: NDArray[np.int32]
    attempt: NDArray[np.int32]
    step: NDArray[np.int32]
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    minimum: NDArray[np.float64]
    maximum: NDArray[np.float64]
    non_finite: NDArray[np.int32]


def choose(session: Session, filters: Filters) -> Chosen:
    """The runs that pass the filters, as they are now."""
    wanted = select(RunRow.id, RunRow.task, RunRow.cell, RunRow.depth, RunRow.seed).where(*filters.conditions())
    found = session.execute(wanted.order_by(RunRow.created_at, RunRow.id)).all()
    return Chosen([Identity(*row) for row in found], session.execute(select(func.clock_timestamp())).scalar_one())


def points(sessions: Sessions, run_id: UUID, keys: Sequence[str] = (), *, batch: int = 20_000) -> Iterator[Points]:
    """Every effective point of the run, or of those keys."""
    last: tuple[str, int] | None = None
    while True:
        with sessions() as session:
            found = points_after(session, run_id, keys, last, batch)
        if found.step:
            yield found
            last = found.key[-1], found.step[-1]
        if len(found.step) < batch:
            return


def norms(sessions: Sessions, run_id: UUID, statistic: str, *, batch: int = 20_000) -> Iterator[Norms]:
    """Every effective record of one statistic of the run."""
    with sessions() as session:
        found = hidden_norms.arrays(session, run_id, statistic)
    if found is None:
        return
    layers = found["mean"].shape[1]
    for start in range(0, len(found["steps"]), max(1, batch // layers)):
        some = {name: values[start : start + max(1, batch // layers)] for name, values in found.items()}
        number = len(some["steps"])
        yield Norms(
            layer=np.tile(np.arange(layers, dtype=np.int32), number),
            attempt=np.repeat(some["attempts"], layers),
            step=np.repeat(some["steps"], layers),
            **{name: some[name].reshape(-1) for name in ("mean", "deviation", "minimum", "maximum", "non_finite")},
        )


def points_after(
    session: Session, run_id: UUID, keys: Sequence[str], last: tuple[str, int] | None, limit: int
) -> Points:
    """The next effective points behind a key and step, in their order, at most so many."""
    counting, point = windows([run_id]), MetricRow
    wanted = (
        select(point.key, point.attempt, point.step, point.value)
        .join(
            counting,
            (point.attempt == counting.c.attempt) & (point.step > counting.c.after) & (point.step <= counting.c.until),
        )
        .where(point.run_id == run_id)
        .order_by(point.key, point.step)
        .limit(limit)
    )
    if keys:
        wanted = wanted.where(point.key == any_(literal(list(keys), ARRAY(Text))))
    if last is not None:
        wanted = wanted.where(tuple_(point.key, point.step) > tuple_(*last))
    rows = session.execute(wanted.execution_options(**BINARY)).all()
    return Points(*(map(list, zip(*rows, strict=True)) if rows else ([], [], [], [])))
