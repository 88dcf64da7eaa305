"""What does the eye need of many long series? The points of each bucket summed up, in the same buckets for all.

A bucket is a whole number of blocks (store/metric_blocks.py) of every run. A block that a resume has cut gives its
points one by one, so that no superseded point counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Double,
    Integer,
    Text,
    Uuid,
    any_,
    case,
    cast,
    func,
    literal,
    null,
    select,
    union_all,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by, array
from sqlalchemy.orm import Session

from store.effective import windows
from store.engine import BINARY
from store.metric_blocks import block_of
from store.metrics import is_finite
from store.tables import MetricBlockRow, MetricRow, RunRow


@dataclass(frozen=True)
class Line:
    """One metric of one run: its points where they are few (`values`), else an entry per bucket that has points.

    steps are those of the points, or the first step of each bucket. minimum and maximum are over the finite values of
    a bucket, None where it has none; points counts all values, non_finite those that are not finite.
    """

    run_id: UUID
    key: str
    steps: list[int] = field(default_factory=list)
    values: list[float] | None = None
    first: list[float] = field(default_factory=list)
    last: list[float] = field(default_factory=list)
    minimum: list[float | None] = field(default_factory=list)
    maximum: list[float | None] = field(default_factory=list)
    points: list[int] = field(default_factory=list)
    non_finite: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Chart:
    """Lines in the order of runs, then keys; each bucket covers `width` steps, the first begins at step 0."""

    width: int
    lines: list[Line]


def read(session: Session, run_ids: Sequence[UUID], keys: Sequence[str], buckets: int) -> Chart:
    """The effective series of the runs in at most `buckets` equal buckets over the longest run.

    Args:
        run_ids: Which runs; one without points of a key has an empty line.
        keys: Which series.
        buckets: A series of no more points than this stays whole.
    """
    longest = session.scalar(select(func.max(RunRow.total_steps)).where(RunRow.id.in_(run_ids))) or 1
    block = block_of(longest)
    width = block * -(-(longest + 1) // (block * buckets))
    lines = {(run_id, key): Line(run_id, key) for run_id in run_ids for key in keys}
    for run_id, key, *columns in session.execute(_summed(run_ids, keys, width)):
        lines[run_id, key] = Line(run_id, key, columns[0], None, *columns[1:])
    few = [place for place, line in lines.items() if sum(line.points) <= buckets]
    for run_id, key, steps, values in session.execute(_points(few)) if few else ():
        lines[run_id, key] = Line(run_id, key, steps, values)
    return Chart(width, list(lines.values()))


def points(session: Session, run_id: UUID, keys: Sequence[str] = ()) -> int:
    """How many points of the keys, or of all, the run's attempts have recorded."""
    wanted = select(func.coalesce(func.sum(MetricBlockRow.points), 0)).where(MetricBlockRow.run_id == run_id)
    if keys:
        wanted = wanted.where(MetricBlockRow.key == any_(literal(list(keys), ARRAY(Text))))
    return session.scalar(wanted) or 0


def _summed(run_ids: Sequence[UUID], keys: Sequence[str], width: int) -> Any:
    counting = windows(run_ids)
    block, point = MetricBlockRow, MetricRow
    wanted = (
        block.run_id == any_(literal(list(run_ids), ARRAY(Uuid))),
        block.key == any_(literal(list(keys), ARRAY(Text))),
        block.run_id == counting.c.run_id,
        block.attempt == counting.c.attempt,
        block.last_step > counting.c.after,
        block.first_step <= counting.c.until,
    )
    inside = (block.first_step > counting.c.after) & (block.last_step <= counting.c.until)
    whole = select(
        block.run_id,
        block.key,
        block.first_step,
        block.last_step,
        block.first,
        block.last,
        block.minimum,
        block.maximum,
        block.points,
        block.non_finite,
    ).where(*wanted, inside)
    finite = is_finite(point.value)
    shown = case((finite, point.value), else_=null())
    single = (
        select(
            point.run_id,
            point.key,
            point.step,
            point.step,
            point.value,
            point.value,
            shown,
            shown,
            literal(1, Integer),
            case((finite, 0), else_=1),
        )
        .join(
            block,
            (point.run_id == block.run_id)
            & (point.key == block.key)
            & (point.attempt == block.attempt)
            & point.step.between(block.first_step, block.last_step),
        )
        .where(*wanted, ~inside, point.step > counting.c.after, point.step <= counting.c.until)
    )
    piece = union_all(whole, single).subquery().c
    bucket = piece.first_step // width
    summed = (
        select(
            piece.run_id,
            piece.key,
            (bucket * width).label("start"),
            func.min(_pair(piece.first_step, piece.first)).label("first"),
            func.max(_pair(piece.last_step, piece.last)).label("last"),
            func.min(piece.minimum).label("minimum"),
            func.max(piece.maximum).label("maximum"),
            func.sum(piece.points).label("points"),
            func.sum(piece.non_finite).label("non_finite"),
        )
        .group_by(piece.run_id, piece.key, bucket)
        .subquery()
        .c
    )
    columns: list[ColumnElement[Any]] = [
        summed.start,
        summed.first[2],
        summed.last[2],
        summed.minimum,
        summed.maximum,
        cast(summed.points, Integer),
        cast(summed.non_finite, Integer),
    ]
    in_order = (func.array_agg(aggregate_order_by(column, summed.start)) for column in columns)
    of_line = select(summed.run_id, summed.key, *in_order).group_by(summed.run_id, summed.key)
    return of_line.execution_options(**BINARY)


def _points(places: Sequence[tuple[UUID, str]]) -> Any:
    counting = windows([run_id for run_id, _ in places])
    point = MetricRow
    runs, keys = zip(*places, strict=True)
    wanted = (
        func.unnest(literal(list(runs), ARRAY(Uuid)), literal(list(keys), ARRAY(Text)))
        .table_valued("run_id", "key")
        .render_derived()
    )
    in_order = (func.array_agg(aggregate_order_by(column, point.step)) for column in (point.step, point.value))
    return (
        select(point.run_id, point.key, *in_order)
        .join(
            counting,
            (point.run_id == counting.c.run_id)
            & (point.attempt == counting.c.attempt)
            & (point.step > counting.c.after)
            & (point.step <= counting.c.until),
        )
        .join(wanted, (wanted.c.run_id == point.run_id) & (wanted.c.key == point.key))
        .group_by(point.run_id, point.key)
        .execution_options(**BINARY)
    )


def _pair(one: ColumnElement[int], other: ColumnElement[float]) -> ColumnElement[Any]:
    return cast(array([cast(one, Double), other]), ARRAY(Double))
