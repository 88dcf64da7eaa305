"""How do hidden norms get in? Each batch as rows of its own, which are joined into long ones when they are many.

A profile is kept at the first recorded step of each of PARTS equal parts of a run, at its last step, and wherever a
value is not finite; the statistics are kept at every recorded step.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from store.copying import copy_rows
from store.hidden_norms import stretches
from store.tables import HiddenNormRow, RunRow
from store.traces import COLUMNS, Stretch, joined, rows

PARTS = 256
"""Profiles along time kept of a run, about; they are most of what the probe says."""
_LONG = 512
_MOST_SHORT = 32


class NormsOfStep(Protocol):
    """One statistic at one step: an entry per layer; profile is (layers, positions)."""

    @property
    def step(self) -> int: ...
    @property
    def statistic(self) -> str: ...
    @property
    def mean(self) -> Sequence[float]: ...
    @property
    def deviation(self) -> Sequence[float]: ...
    @property
    def minimum(self) -> Sequence[float]: ...
    @property
    def maximum(self) -> Sequence[float]: ...
    @property
    def non_finite(self) -> Sequence[int]: ...
    @property
    def profile(self) -> Sequence[Sequence[float]]: ...


def append(session: Session, run: RunRow, records: Iterable[NormsOfStep]) -> None:
    """Store the records that the run's present attempt has not stored before; the caller holds the run's lock."""
    wanted: dict[str, dict[int, NormsOfStep]] = defaultdict(dict)
    for record in records:
        wanted[record.statistic].setdefault(record.step, record)
    known, latest = _known(session, run, min(step for steps in wanted.values() for step in steps))
    fresh = {
        statistic: _stretch([steps[step] for step in sorted(steps)], run.total_steps, latest.get(statistic))
        for statistic, of_step in wanted.items()
        if (steps := {step: record for step, record in of_step.items() if step not in known[statistic]})
    }
    if fresh:
        insert(session, run, fresh)
        _join_short(session, run)


def _known(session: Session, run: RunRow, from_step: int) -> tuple[dict[str, set[int]], dict[str, int]]:
    """The steps from `from_step` on that are stored, and the last step before it, per statistic."""
    row = HiddenNormRow
    of_attempt = row.run_id == run.id, row.attempt == run.attempt
    known: dict[str, set[int]] = defaultdict(set)
    stored = select(row.statistic, row.steps).where(*of_attempt, row.last_step >= from_step)
    for statistic, steps in session.execute(stored):
        known[statistic].update(steps)
    before = select(row.statistic, func.max(row.last_step)).where(*of_attempt, row.last_step < from_step)
    return known, {found[0]: found[1] for found in session.execute(before.group_by(row.statistic))}


def _stretch(records: Sequence[NormsOfStep], total_steps: int, before: int | None) -> Stretch:
    def array(name: str, kind: Any) -> Any:
        return np.array([getattr(record, name) for record in records], dtype=kind).reshape(len(records), -1)

    kept: list[NormsOfStep] = []
    for record in records:
        ends = record.step >= total_steps or any(record.non_finite)
        if before is None or ends or _part(before, total_steps) != _part(record.step, total_steps):
            kept.append(record)
        before = record.step
    layers = len(records[0].mean)
    with np.errstate(over="ignore"):
        profile = np.array([record.profile for record in kept], dtype=np.float32)
    return Stretch(
        steps=np.array([record.step for record in records], dtype=np.int32),
        mean=array("mean", np.float64),
        deviation=array("deviation", np.float64),
        minimum=array("minimum", np.float64),
        maximum=array("maximum", np.float64),
        non_finite=array("non_finite", np.int32),
        profile_steps=np.array([record.step for record in kept], dtype=np.int32),
        profile=profile.reshape(len(kept), layers, len(records[0].profile[0]) if layers else 0),
    )


def _part(step: int, total_steps: int) -> int:
    return step * PARTS // (total_steps + 1)


def insert(session: Session, run: RunRow, pieces: dict[str, Stretch]) -> None:
    columns = {"run_id": "uuid", "attempt": "int4", **COLUMNS}
    made = ((run.id, run.attempt, *row) for row in rows(pieces))
    copy_rows(session, HiddenNormRow.__tablename__, columns, made)


def _join_short(session: Session, run: RunRow) -> None:
    row = HiddenNormRow
    short = row.run_id == run.id, row.attempt == run.attempt, func.cardinality(row.steps) < _LONG
    numbers = session.scalars(select(func.count()).where(*short).group_by(row.statistic)).all()
    if max(numbers, default=0) < _MOST_SHORT:
        return
    pieces: dict[str, list[Stretch]] = defaultdict(list)
    for statistic, stretch in stretches(session, *short):
        pieces[statistic].append(stretch)
    session.execute(delete(row).where(*short), execution_options={"synchronize_session": False})
    whole = {statistic: joined(parts) for statistic, parts in pieces.items()}
    for place in range(0, max(stretch.steps.size for stretch in whole.values()), _LONG):
        part = {
            statistic: stretch.between(int(steps[0]), int(steps[-1]))
            for statistic, stretch in whole.items()
            if (steps := stretch.steps[place : place + _LONG]).size
        }
        insert(session, run, part)
