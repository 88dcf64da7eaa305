"""What do the metric series say? One run's effective series, whole or thinned, and last values of many runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Double,
    Integer,
    Select,
    SQLColumnExpression,
    Text,
    any_,
    cast,
    func,
    literal,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by, array
from sqlalchemy.orm import Session

from store.effective import windows
from store.engine import BINARY
from store.tables import MetricRow, RunRow

_KEPT_PER_BUCKET = 5


@dataclass(frozen=True)
class Series:
    """One metric of one run, in order of steps."""

    key: str
    steps: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)


def read(
    session: Session,
    run_id: UUID,
    keys: Sequence[str] = (),
    *,
    after_step: int | None = None,
    max_points: int | None = None,
) -> list[Series]:
    """The effective series of a run, each step once, in the order of `keys`, or of the alphabet.

    Args:
        keys: Which series; empty for all that there are. One without points comes back empty.
        after_step: Only later steps.
        max_points: A longer series is thinned: the steps of the whole run are cut into equal buckets, and of each
            bucket stay the first, last, smallest, largest and first non-finite point. A shorter one stays whole.
    """
    counting = windows([run_id])
    points = _points(run_id, keys, after_step).join(
        counting,
        (MetricRow.attempt == counting.c.attempt)
        & (MetricRow.step > counting.c.after)
        & (MetricRow.step <= counting.c.until),
    )
    if max_points is not None:
        points = _thinned(points, run_id, max_points)
    return _series(session, points, keys)


def recorded(session: Session, run_id: UUID, keys: Sequence[str] = ()) -> list[Series]:
    """Every point of every attempt, also those that a resume has superseded: a step may stand more than once."""
    return _series(session, _points(run_id, keys, None), keys)


def latest(session: Session, run_ids: Sequence[UUID], keys: Sequence[str]) -> dict[UUID, dict[str, float]]:
    """Each run's last effective value of each of the keys that it has, in one query."""
    counting = windows(run_ids)
    wanted = func.unnest(literal(list(keys), ARRAY(Text))).table_valued("key").render_derived()
    newest = (
        select(MetricRow.step, MetricRow.value)
        .where(
            MetricRow.run_id == counting.c.run_id,
            MetricRow.key == wanted.c.key,
            MetricRow.attempt == counting.c.attempt,
            MetricRow.step > counting.c.after,
            MetricRow.step <= counting.c.until,
        )
        .order_by(MetricRow.step.desc())
        .limit(1)
        .lateral()
    )
    found = session.execute(
        select(counting.c.run_id, wanted.c.key, newest.c.value)
        .select_from(counting)
        .join(wanted, true())
        .join(newest, true())
        .order_by(newest.c.step)
    ).all()
    of_run: dict[UUID, dict[str, float]] = {id: {} for id in run_ids}
    for run_id, name, value in found:
        of_run[run_id][name] = value
    return of_run


def last(session: Session, run_ids: Sequence[UUID], key: str) -> dict[UUID, float]:
    """The last effective value of one key, for those runs that have it."""
    return {id: values[key] for id, values in latest(session, run_ids, [key]).items() if key in values}


def _points(run_id: UUID, keys: Sequence[str], after_step: int | None) -> Select[str, int, int, float]:
    points = select(MetricRow.key, MetricRow.step, MetricRow.attempt, MetricRow.value).where(MetricRow.run_id == run_id)
    if keys:
        points = points.where(MetricRow.key == any_(literal(list(keys), ARRAY(Text))))
    if after_step is not None:
        points = points.where(MetricRow.step > after_step)
    return points


def _thinned(points: Select[str, int, int, float], run_id: UUID, max_points: int) -> Select[str, int, int, float]:
    buckets = max(1, max_points // _KEPT_PER_BUCKET)
    every = points.cte("every")
    point = every.c
    total = select(cast(RunRow.total_steps, BigInteger)).where(RunRow.id == run_id).scalar_subquery()
    finite = is_finite(point.value)
    by_value = (func.min(_pair(point.value, point.step)), func.max(_pair(point.value, -point.step)))
    extremes = (
        select(
            point.key,
            func.min(point.step).label("first"),
            func.max(point.step).label("last"),
            func.min(point.step).filter(~finite).label("non_finite"),
            by_value[0].filter(finite).label("smallest"),
            by_value[1].filter(finite).label("largest"),
        )
        .group_by(point.key, point.step * buckets // (total + 1))
        .subquery()
        .c
    )
    steps = array(
        [
            extremes.first,
            extremes.last,
            extremes.non_finite,
            cast(extremes.smallest[2], Integer),
            -cast(extremes.largest[2], Integer),
        ]
    )
    kept = select(extremes.key, func.unnest(steps).label("step")).distinct().subquery().c
    lengths = select(point.key, func.count().label("length")).group_by(point.key).subquery().c
    return (
        select(point.key, point.step, point.attempt, point.value)
        .join(lengths.key.table, lengths.key == point.key)
        .outerjoin(kept.key.table, (kept.key == point.key) & (kept.step == point.step))
        .where(or_(lengths.length <= max_points, kept.step.is_not(None)))
    )


def is_finite(value: SQLColumnExpression[float]) -> ColumnElement[bool]:
    """Whether a value is finite: only such a number minus itself is 0."""
    return value - value == 0


def _pair(one: ColumnElement[float], other: ColumnElement[int]) -> ColumnElement[Any]:
    return cast(array([one, cast(other, Double)]), ARRAY(Double))


def _series(session: Session, points: Select[str, int, int, float], keys: Sequence[str]) -> list[Series]:
    point = points.subquery().c
    in_order = [
        func.array_agg(aggregate_order_by(column, point.step, point.attempt))
        for column in (point.step, point.value, point.attempt)
    ]
    of_key = {key: Series(key) for key in keys}
    wanted = select(point.key, *in_order).group_by(point.key).order_by(point.key)
    for key, steps, values, attempts in session.execute(wanted.execution_options(**BINARY)):
        of_key[key] = Series(key, steps, values, attempts)
    return list(of_key.values())
