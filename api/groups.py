"""What do the seeds of one group say together? Statistics per step over curves of unequal length."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from api.bootstrap import mean_intervals
from api.expansion import leaves

Floats = NDArray[np.float64]
_NUMBERS_AT_ONCE = 2**17
"""Of every array in the making: as many as stay in the cache, and in memory that is at hand already."""
_MEASURED = (
    *("mean", "median", "iqm", "low", "high", "minimum", "maximum"),
    *("bootstrap_low", "bootstrap_high"),
)


@dataclass(frozen=True)
class Curve:
    """One run's value per layer at each recorded step: steps (recorded,), values (recorded, layers)."""

    seed: int
    steps: NDArray[np.int64]
    values: Floats


@dataclass(frozen=True)
class OverSeeds:
    """Per step of the union of all steps, (steps,), and per layer, (steps, layers).

    n counts the seeds with a finite value; mean, median, iqm, minimum and maximum are over those and NaN without any;
    iqm leaves out a quarter of them, rounded down, at either end; low and high bound the mean's 95% t interval and are
    NaN where n < 2; non_finite counts the seeds that recorded no finite value; recorded counts all steps.
    """

    steps: NDArray[np.int64]
    n: NDArray[np.int64]
    mean: Floats
    median: Floats
    iqm: Floats
    low: Floats
    high: Floats
    minimum: Floats
    maximum: Floats
    non_finite: NDArray[np.int64]
    bootstrap_low: Floats | None = None
    bootstrap_high: Floats | None = None
    recorded: int = 0


def over_seeds(curves: Sequence[Curve], *, most_steps: int | None = None, bootstrap: bool = False) -> OverSeeds:
    """The statistics over seeds, step by step; several curves of one seed count once, by their mean.

    A curve that has no value at a step, because it is shorter or was recorded at other steps, lowers n there.

    Args:
        curves: At least one.
        most_steps: At more steps than this, so many evenly chosen ones are kept, the first and the last among them.
        bootstrap: Whether the mean's bootstrap interval is computed too.
    """
    every = _union([curve.steps for curve in curves])
    steps = every if most_steps is None or every.size <= most_steps else every[_even(every.size, most_steps)]
    values, present = _by_seed(curves, steps)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        found = _statistics(steps, values, present)
    if bootstrap:
        bounds = mean_intervals(values.reshape(len(values), -1))
        low, high = (bound.reshape(found.mean.shape) for bound in bounds)
        found = replace(found, bootstrap_low=low, bootstrap_high=high)
    return replace(found, recorded=every.size)


def over_seeds_in_logs(curves: Sequence[Curve], *, most_steps: int | None = None, bootstrap: bool = False) -> OverSeeds:
    """The same from the logarithms of the values: mean is geometric, low and high bound it with the t interval of ln.

    A value that is not positive has no finite logarithm and is left out and counted as such.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        logs = [Curve(curve.seed, curve.steps, np.log(curve.values)) for curve in curves]
        found = over_seeds(logs, most_steps=most_steps, bootstrap=bootstrap)
        back = {name: np.exp(values) for name in _MEASURED if (values := getattr(found, name)) is not None}
    return replace(found, **back)


def _union(series: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    if all(np.array_equal(steps, series[0]) for steps in series):
        return series[0]
    return np.unique(np.concatenate(series))


def _even(count: int, most: int) -> NDArray[np.intp]:
    return np.unique(np.rint(np.linspace(0, count - 1, most)).astype(np.intp))


def _by_seed(curves: Sequence[Curve], steps: NDArray[np.int64]) -> tuple[Floats, NDArray[np.bool_]]:
    """Each seed's values at the steps, (seeds, steps, layers), NaN where not finite; and which it has recorded."""
    seeds = sorted({curve.seed for curve in curves})
    shape = (len(seeds), steps.size, curves[0].values.shape[1])
    total, number = np.zeros(shape), np.zeros(shape)
    present = np.zeros((*shape[:2], 1), dtype=bool)
    if len(seeds) == len(curves) and all(np.array_equal(curve.steps, steps) for curve in curves):
        values = np.stack([curve.values for curve in sorted(curves, key=lambda curve: curve.seed)])
        finite = np.isfinite(values)
        return values if finite.all() else np.where(finite, values, np.nan), ~present
    for curve in curves:
        seed, at = seeds.index(curve.seed), np.searchsorted(steps, curve.steps)
        shared = (at < steps.size) & (steps[np.minimum(at, steps.size - 1)] == curve.steps)
        at, values = at[shared], curve.values[shared]
        finite = np.isfinite(values)
        total[seed, at] += np.where(finite, values, 0.0)
        number[seed, at] += finite
        present[seed, at] = True
    with np.errstate(invalid="ignore", over="ignore"):
        return total / number, present


def _statistics(steps: NDArray[np.int64], values: Floats, present: NDArray[np.bool_]) -> OverSeeds:
    at_once = max(1, _NUMBERS_AT_ONCE // max(1, values.shape[0] * values.shape[2]))
    starts = range(0, max(1, steps.size), at_once)
    pieces = [_of_piece(values[:, start : start + at_once], present[:, start : start + at_once]) for start in starts]
    joined: dict[str, Any] = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
    return OverSeeds(steps, **joined)


def _of_piece(values: Floats, present: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
    counted = ~np.isnan(values)
    whole = bool(counted.all())
    n = counted.sum(axis=0)
    mean = (values if whole else np.where(counted, values, 0.0)).sum(axis=0) / n
    squares = (values - mean if whole else np.where(counted, values - mean, 0.0)) ** 2
    quantiles = stdtrit(np.maximum(np.arange(len(values) + 1) - 1, 1), 0.975)
    half = np.where(n >= 2, quantiles[n] * np.sqrt(squares.sum(axis=0) / (n - 1) / n), np.nan)
    ordered = np.sort(values, axis=0)  # NaN last
    quarter = n // 4
    return {
        "n": n,
        "mean": mean,
        "median": (_nth(ordered, (n - 1) // 2) + _nth(ordered, n // 2)) / 2,
        "iqm": _middle_sum(ordered, quarter, n - quarter) / (n - 2 * quarter),
        "low": mean - half,
        "high": mean + half,
        "minimum": ordered[0],
        "maximum": _nth(ordered, n - 1),
        "non_finite": (present & ~counted).sum(axis=0),
    }


def _middle_sum(ordered: Floats, first: NDArray[np.int64], end: NDArray[np.int64]) -> Floats:
    """The sum of each column's values from the first place to that before the end."""
    if _alike(first) and _alike(end):
        same: Floats = ordered[first.flat[0] : end.flat[0]].sum(axis=0)
        return same
    place = np.arange(len(ordered)).reshape(-1, 1, 1)
    found: Floats = np.where((place >= first) & (place < end), ordered, 0.0).sum(axis=0)
    return found


def _nth(ordered: Floats, place: NDArray[np.int64]) -> Floats:
    if _alike(place) and place.flat[0] >= 0:
        same: Floats = ordered[place.flat[0]]
        return same
    found: Floats = np.take_along_axis(ordered, np.clip(place, 0, len(ordered) - 1)[None], axis=0)[0]
    return found


def _alike(places: NDArray[np.int64]) -> bool:
    return places.size > 0 and bool((places == places.flat[0]).all())


def differing_fields(configs: Sequence[Mapping[str, Any]], ignored: str = "training.seed") -> dict[str, list[Any]]:
    """The dotted fields, the seed aside, in which the configurations differ, with the values found."""
    found: dict[str, list[Any]] = {}
    flat = [dict(leaves(config)) for config in configs]
    for field in sorted({name for config in flat for name in config} - {ignored}):
        values: list[Any] = []
        for config in flat:
            if config.get(field) not in values:
                values.append(config.get(field))
        if len(values) > 1:
            found[field] = values
    return found
