"""What do the hidden-norm traces say? The effective traces of one run in full, or the means of many at once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, CTE, ColumnElement, Double, Text, Uuid, any_, cast, literal, null, select
from sqlalchemy.orm import Session

from store.effective import windows
from store.tables import HiddenNormRow


@dataclass(frozen=True)
class Trace:
    """The mean of one statistic in one run: an entry per recorded step, each with a number per layer."""

    steps: list[int] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)
    mean: list[list[float]] = field(default_factory=list)
    non_finite: list[list[int]] = field(default_factory=list)


@dataclass(frozen=True)
class FullTrace:
    """All that was recorded of one statistic: [step][layer], and [step][layer][position] in `profile` if asked for."""

    statistic: str
    steps: list[int] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)
    mean: list[list[float]] = field(default_factory=list)
    deviation: list[list[float]] = field(default_factory=list)
    minimum: list[list[float]] = field(default_factory=list)
    maximum: list[list[float]] = field(default_factory=list)
    non_finite: list[list[int]] = field(default_factory=list)
    profile: list[list[list[float]]] | None = None


def read(
    session: Session,
    run_id: UUID,
    statistics: Sequence[str] = (),
    *,
    after_step: int | None = None,
    include_profile: bool = False,
) -> list[FullTrace]:
    """The effective traces of a run, each step once, in the order of `statistics`, or of the alphabet.

    Args:
        statistics: Which; empty for all that there are. One without records comes back empty.
        after_step: Only later steps.
        include_profile: Whether the profiles along time are read, which are most of the bytes.
    """
    counting = windows([run_id])
    row = HiddenNormRow
    # As double precision, or the text form would cut the last bits.
    profile: ColumnElement[Any] = cast(row.profile, ARRAY(Double)) if include_profile else null()
    wanted = (
        select(
            row.statistic,
            row.step,
            row.attempt,
            row.mean,
            row.deviation,
            row.minimum,
            row.maximum,
            row.non_finite,
            profile,
        )
        .join(counting, _counts(counting))
        .where(row.run_id == run_id)
        .order_by(row.statistic, row.step)
    )
    if statistics:
        wanted = wanted.where(row.statistic == any_(literal(list(statistics), ARRAY(Text))))
    if after_step is not None:
        wanted = wanted.where(row.step > after_step)
    of_statistic = {name: _empty(name, include_profile) for name in statistics}
    for name, step, attempt, mean, deviation, minimum, maximum, non_finite, flat in session.execute(wanted):
        trace = of_statistic.setdefault(name, _empty(name, include_profile))
        trace.steps.append(step)
        trace.attempts.append(attempt)
        trace.mean.append(mean)
        trace.deviation.append(deviation)
        trace.minimum.append(minimum)
        trace.maximum.append(maximum)
        trace.non_finite.append(non_finite)
        if trace.profile is not None:
            positions = len(flat) // len(mean) if mean else 0
            trace.profile.append([flat[i * positions : (i + 1) * positions] for i in range(len(mean))])
    return list(of_statistic.values())


def traces(session: Session, run_ids: Sequence[UUID], statistic: str) -> dict[UUID, Trace]:
    """The effective means of one statistic for many runs, in one query; a run without records has an empty trace."""
    counting = windows(run_ids)
    row = HiddenNormRow
    wanted = (
        select(row.run_id, row.step, row.attempt, row.mean, row.non_finite)
        .join(counting, _counts(counting))
        .where(row.run_id == any_(literal(list(run_ids), ARRAY(Uuid))), row.statistic == statistic)
        .order_by(row.run_id, row.step)
    )
    of_run = {id: Trace() for id in run_ids}
    for run_id, step, attempt, mean, non_finite in session.execute(wanted):
        trace = of_run[run_id]
        trace.steps.append(step)
        trace.attempts.append(attempt)
        trace.mean.append(mean)
        trace.non_finite.append(non_finite)
    return of_run


def _counts(counting: CTE) -> ColumnElement[bool]:
    return (
        (HiddenNormRow.run_id == counting.c.run_id)
        & (HiddenNormRow.attempt == counting.c.attempt)
        & (HiddenNormRow.step > counting.c.after)
        & (HiddenNormRow.step <= counting.c.until)
    )


def _empty(statistic: str, include_profile: bool) -> FullTrace:
    return FullTrace(statistic, profile=[] if include_profile else None)
