"""What do the hidden-norm traces say? The effective traces of one run in full, or the means of many at once."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ARRAY, ColumnElement, Select, Text, any_, func, literal, select
from sqlalchemy.orm import Session, aliased

from store.effective import windows
from store.engine import BINARY
from store.tables import HiddenNormRow, RunRow
from store.trace_encoding import Numbers
from store.traces import BASE, Stretch, unpacked

_OF_STEPS = ("mean", "deviation", "minimum", "maximum", "non_finite")


@dataclass(frozen=True)
class Trace:
    """The mean of one statistic in one run: steps (recorded,), mean (recorded, layers)."""

    steps: NDArray[np.int32]
    mean: NDArray[np.float64]


@dataclass(frozen=True)
class FullTrace:
    """All that was recorded of one statistic: [step][layer], and [profile step][layer][position] where asked for."""

    statistic: str
    steps: list[int] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)
    mean: list[list[float]] = field(default_factory=list)
    deviation: list[list[float]] = field(default_factory=list)
    minimum: list[list[float]] = field(default_factory=list)
    maximum: list[list[float]] = field(default_factory=list)
    non_finite: list[list[int]] = field(default_factory=list)
    profile_steps: list[int] | None = None
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
        include_profile: Whether the profiles along time are read, which are most of the bytes; they are kept at some
            of the steps only.
    """
    names = (*_OF_STEPS, *(["profile"] if include_profile else []))
    wanted = _effective(names, [run_id]).order_by(HiddenNormRow.statistic)
    if statistics:
        wanted = wanted.where(HiddenNormRow.statistic == any_(literal(list(statistics), ARRAY(Text))))
    if after_step is not None:
        wanted = wanted.where(HiddenNormRow.last_step > after_step)
    pieces: dict[str, list[dict[str, Numbers]]] = {name: [] for name in statistics}
    for found in session.execute(wanted):
        after = found.after if after_step is None else max(found.after, after_step)
        pieces.setdefault(found.statistic, []).append(_counted(found, names, after))
    return [_full(name, parts, include_profile) for name, parts in pieces.items()]


def size(
    session: Session,
    run_id: UUID,
    statistics: Sequence[str] = (),
    *,
    after_step: int | None = None,
    include_profile: bool = False,
) -> int:
    """How many numbers `read` would find, about: whole rows, of every attempt."""
    row = HiddenNormRow
    positions = select(func.cardinality(RunRow.profile_positions)).where(RunRow.id == run_id).scalar_subquery()
    of_steps = len(_OF_STEPS) * row.layers * func.cardinality(row.steps)
    along = row.layers * func.cardinality(row.profile_steps) * func.coalesce(positions, 0)
    wanted = select(func.sum(of_steps + along if include_profile else of_steps)).where(row.run_id == run_id)
    if statistics:
        wanted = wanted.where(row.statistic == any_(literal(list(statistics), ARRAY(Text))))
    if after_step is not None:
        wanted = wanted.where(row.last_step > after_step)
    return session.scalar(wanted) or 0


def traces(session: Session, run_ids: Sequence[UUID], statistic: str) -> dict[UUID, Trace]:
    """The effective means of one statistic for many runs, in one query; a run without records has an empty trace."""
    names = ("mean",)
    pieces: dict[UUID, list[dict[str, Numbers]]] = defaultdict(list)
    for found in session.execute(_effective(names, run_ids).where(HiddenNormRow.statistic == statistic)):
        pieces[found.run_id].append(_counted(found, names, found.after))
    return {run_id: _trace(pieces[run_id]) for run_id in run_ids}


@dataclass(frozen=True)
class Profiles:
    """The profiles along time of one statistic in one run: steps (kept,), values (kept, layers, positions)."""

    steps: NDArray[np.int32]
    values: NDArray[np.float64]


def profiles(session: Session, run_ids: Sequence[UUID], statistic: str) -> dict[UUID, Profiles]:
    """The effective profiles of one statistic for many runs, in one query; runs that kept none are left out."""
    pieces: dict[UUID, list[dict[str, Numbers]]] = defaultdict(list)
    for found in session.execute(_effective(("profile",), run_ids).where(HiddenNormRow.statistic == statistic)):
        cut = _counted(found, ("profile",), found.after)
        if cut["profile_steps"].size:
            pieces[found.run_id].append({name: cut[name] for name in ("profile_steps", "profile")})
    ordered = {run_id: _in_order(parts) for run_id, parts in pieces.items()}
    return {run_id: Profiles(one["profile_steps"], one["profile"]) for run_id, one in ordered.items()}


def arrays(session: Session, run_id: UUID, statistic: str) -> dict[str, Numbers] | None:
    """The effective traces of one statistic as arrays over (steps, layers); None without records."""
    wanted = _effective(_OF_STEPS, [run_id]).where(HiddenNormRow.statistic == statistic)
    pieces = [_counted(found, _OF_STEPS, found.after) for found in session.execute(wanted)]
    return _in_order(pieces) if pieces else None


def stretches(session: Session, *conditions: ColumnElement[bool]) -> Iterator[tuple[str, Stretch]]:
    """The rows that fulfil conditions on HiddenNormRow, with their statistics."""
    names = (*_OF_STEPS, "profile")
    for found in session.execute(_rows(names).where(*conditions)).all():
        arrays = {name: _array(found, name) for name in names}
        shape = (len(found.profile_steps), found.layers, -1)
        arrays["profile"] = (
            arrays["profile"].reshape(shape)
            if arrays["profile"].size
            else np.zeros((shape[0], found.layers, 0), np.float32)
        )
        steps: dict[str, Any] = {
            name: np.array(getattr(found, name), dtype=np.int32) for name in ("steps", "profile_steps")
        }
        yield found.statistic, Stretch(**steps, **arrays)


def _rows(names: Sequence[str]) -> Select[Any]:
    """Rows with their arrays, and beside a share the same arrays of its base as base_<name>."""
    row, base = HiddenNormRow, aliased(HiddenNormRow)
    beside = (
        row.unit.is_not(None)
        & (base.run_id == row.run_id)
        & (base.statistic == BASE)
        & (base.attempt == row.attempt)
        & (base.first_step == row.first_step)
    )
    return (
        select(
            *(row.run_id, row.attempt, row.statistic, row.steps, row.layers, row.unit, row.profile_steps),
            *(getattr(row, name) for name in names),
            *(getattr(base, name).label(f"base_{name}") for name in names if name != "non_finite"),
        )
        .outerjoin(base, beside)
        .execution_options(**BINARY)
    )


def _effective(names: Sequence[str], run_ids: Sequence[UUID]) -> Select[Any]:
    counting = windows(run_ids)
    row = HiddenNormRow
    counts = (
        (row.run_id == counting.c.run_id)
        & (row.attempt == counting.c.attempt)
        & (row.last_step > counting.c.after)
        & (row.first_step <= counting.c.until)
    )
    return _rows(names).add_columns(counting.c.after, counting.c.until).join(counting, counts)


def _counted(found: Any, names: Sequence[str], after: int) -> dict[str, Numbers]:
    """The arrays of a row, cut to the steps that count."""
    steps = np.array(found.steps, dtype=np.int32)
    cut = {name: _array(found, name) for name in names if name != "profile"} | {"steps": steps}
    inside = (steps > after) & (steps <= found.until)
    if not inside.all():
        cut = {name: values[inside] for name, values in cut.items()}
    cut["attempts"] = np.full(cut["steps"].size, found.attempt, dtype=np.int32)
    if "profile" in names:
        profiled = np.array(found.profile_steps, dtype=np.int32)
        inside = (profiled > after) & (profiled <= found.until)
        profile = _array(found, "profile")
        shape = (len(profiled), found.layers, profile.shape[-1] // max(found.layers, 1))
        cut |= {"profile_steps": profiled[inside], "profile": profile.reshape(shape)[inside]}
    return cut


def _array(found: Any, name: str) -> Numbers:
    steps = len(found.profile_steps if name == "profile" else found.steps)
    return unpacked(name, getattr(found, name), steps, found.unit, getattr(found, f"base_{name}", None))


def _in_order(pieces: Sequence[dict[str, Numbers]]) -> dict[str, Numbers]:
    pieces = sorted(pieces, key=_first_step)
    every = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
    unordered = [name for name in ("steps", "profile_steps") if name in every and (np.diff(every[name]) < 0).any()]
    for steps in unordered:
        order = np.argsort(every[steps], kind="stable")
        every |= {name: every[name][order] for name in every if name.startswith("profile") == (steps != "steps")}
    return every


def _first_step(piece: dict[str, Numbers]) -> int:
    steps = piece["steps"] if "steps" in piece else piece["profile_steps"]
    return int(steps[0]) if steps.size else 0


def _trace(pieces: Sequence[dict[str, Numbers]]) -> Trace:
    if not pieces:
        return Trace(np.zeros(0, dtype=np.int32), np.zeros((0, 0)))
    found = _in_order(pieces)
    return Trace(found["steps"], found["mean"])


def _full(statistic: str, pieces: Sequence[dict[str, Numbers]], include_profile: bool) -> FullTrace:
    if not pieces:
        return FullTrace(statistic, **({"profile_steps": [], "profile": []} if include_profile else {}))
    return FullTrace(statistic, **{name: values.tolist() for name, values in _in_order(pieces).items()})
