"""How does a stretch of hidden norms lie in a row? Arrays over steps and layers, each packed into bytes.

`relative` is `whole` divided by one number per layer: beside a stretch of `whole` at the same steps it is kept as what
that prediction leaves over, which is nothing where it was computed so, and whatever it is where it was not.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.trace_encoding import Numbers, likely_unit, pack, ratio, unpack

BASE = "whole"
SHARE = "relative"
COLUMNS = {
    "statistic": "text",
    "first_step": "int4",
    "last_step": "int4",
    "steps": "int4[]",
    "layers": "int4",
    "unit": "float8[]",
    "mean": "bytea",
    "deviation": "bytea",
    "minimum": "bytea",
    "maximum": "bytea",
    "non_finite": "bytea",
    "profile_steps": "int4[]",
    "profile": "bytea",
}
_DOUBLES = ("mean", "deviation", "minimum", "maximum")


@dataclass(frozen=True)
class Stretch:
    """Consecutive records of one statistic: steps (n,); mean to non_finite (n, layers); profile (p, layers, positions).

    profile_steps (p,) are those of the steps whose profile is kept.
    """

    steps: NDArray[np.int32]
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    minimum: NDArray[np.float64]
    maximum: NDArray[np.float64]
    non_finite: NDArray[np.int32]
    profile_steps: NDArray[np.int32]
    profile: NDArray[np.float32]

    def between(self, first: int, last: int) -> "Stretch":
        """The records of the steps from `first` to `last`."""
        inside, profiled = ((steps >= first) & (steps <= last) for steps in (self.steps, self.profile_steps))
        return Stretch(
            *(getattr(self, f.name)[profiled if f.name.startswith("profile") else inside] for f in fields(self))
        )


def joined(stretches: Sequence[Stretch]) -> Stretch:
    """All records of one statistic in order of steps."""
    every = {f.name: np.concatenate([getattr(s, f.name) for s in stretches]) for f in fields(Stretch)}
    order, profiled = (np.argsort(every[name], kind="stable") for name in ("steps", "profile_steps"))
    return Stretch(
        **{name: values[profiled if name.startswith("profile") else order] for name, values in every.items()}
    )


def rows(stretches: Mapping[str, Stretch]) -> Iterator[tuple[Any, ...]]:
    """The rows of the statistics of one piece of an attempt, in the order of COLUMNS."""
    base = stretches.get(BASE)
    for statistic, stretch in stretches.items():
        beside = base if statistic == SHARE and base is not None and _alike(stretch, base) else None
        yield _row(statistic, stretch, beside)


def unpacked(name: str, data: bytes, steps: int, unit: Sequence[float] | None, base: bytes | None) -> Numbers:
    """One array of a row, (steps, columns).

    Args:
        name: Its column: mean to non_finite, or profile.
        data: Its bytes.
        steps: How many steps it covers.
        unit: The row's unit.
        base: The same column of the base's row, where there is a unit.
    """
    if name == "non_finite":
        return unpack(data, np.int32, steps)
    kind = np.float32 if name == "profile" else np.float64
    if unit is None or base is None:
        return unpack(data, kind, steps)
    return unpack(data, kind, steps, _predicted(unpack(base, kind, steps), np.asarray(unit)))


def _row(statistic: str, stretch: Stretch, base: Stretch | None) -> tuple[Any, ...]:
    unit = None if base is None else likely_unit(base.mean, stretch.mean)
    arrays = {name: getattr(stretch, name) for name in _DOUBLES} | {"profile": _flat(stretch.profile)}
    packed = {"non_finite": pack(stretch.non_finite)}
    for name, values in arrays.items():
        predicted = None
        if base is not None and unit is not None:
            known = _flat(base.profile) if name == "profile" else getattr(base, name)
            predicted = _predicted(known, unit)
        packed[name] = pack(values, predicted)
    facts = {
        "statistic": statistic,
        "first_step": int(stretch.steps[0]),
        "last_step": int(stretch.steps[-1]),
        "steps": stretch.steps.tolist(),
        "layers": stretch.mean.shape[1],
        "unit": None if unit is None else unit.tolist(),
        "profile_steps": stretch.profile_steps.tolist(),
    }
    return tuple((facts | packed)[name] for name in COLUMNS)


def _predicted(known: Numbers, unit: NDArray[np.float64]) -> Numbers:
    return ratio(known, np.repeat(unit, known.shape[1] // unit.size) if unit.size else unit)


def _flat(profile: NDArray[np.float32]) -> Numbers:
    return profile.reshape(len(profile), profile.shape[1] * profile.shape[2])


def _alike(one: Stretch, other: Stretch) -> bool:
    return (
        one.mean.shape == other.mean.shape
        and one.profile.shape == other.profile.shape
        and np.array_equal(one.steps, other.steps)
        and np.array_equal(one.profile_steps, other.profile_steps)
    )
