"""What do the seeds of one group say together? Statistics per step over curves of unequal length."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from api.expansion import leaves

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """One run's value per layer at each recorded step: steps (recorded,), values (recorded, layers)."""

    seed: int
    steps: NDArray[np.int64]
    values: Floats


@dataclass(frozen=True)
class OverSeeds:
    """Per step of the union of all steps, (steps,), and per layer, (steps, layers).

    n counts the seeds with a finite value; mean, minimum and maximum are over those and NaN without any; low and high
    bound the mean's 95% t interval and are NaN where n < 2; non_finite counts the seeds that recorded no finite value.
    """

    steps: NDArray[np.int64]
    n: NDArray[np.int64]
    mean: Floats
    low: Floats
    high: Floats
    minimum: Floats
    maximum: Floats
    non_finite: NDArray[np.int64]


def over_seeds(curves: Sequence[Curve]) -> OverSeeds:
    """The statistics over seeds, step by step; several curves of one seed count once, by their mean.

    A curve that has no value at a step, because it is shorter or was recorded at other steps, lowers n there.
    """
    steps = np.unique(np.concatenate([curve.steps for curve in curves]))
    seeds = sorted({curve.seed for curve in curves})
    layers = curves[0].values.shape[1]
    total = np.zeros((len(seeds), steps.size, layers))
    finite = np.zeros(total.shape, dtype=np.int64)
    present = np.zeros((len(seeds), steps.size, 1), dtype=bool)
    for curve in curves:
        seed, at = seeds.index(curve.seed), np.searchsorted(steps, curve.steps)
        is_finite = np.isfinite(curve.values)
        total[seed, at] += np.where(is_finite, curve.values, 0.0)
        finite[seed, at] += is_finite
        present[seed, at] = True
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return _statistics(steps, total / finite, finite > 0, present)


def _statistics(steps: NDArray[np.int64], values: Floats, counted: NDArray[np.bool_], present: Any) -> OverSeeds:
    n = counted.sum(axis=0)
    mean = np.where(counted, values, 0.0).sum(axis=0) / n
    squares = np.where(counted, values - mean, 0.0) ** 2
    half = stdtrit(np.maximum(n - 1, 1), 0.975) * np.sqrt(squares.sum(axis=0) / (n - 1) / n)
    half = np.where(n >= 2, half, np.nan)
    none = n == 0
    return OverSeeds(
        steps=steps,
        n=n,
        mean=mean,
        low=mean - half,
        high=mean + half,
        minimum=np.where(none, np.nan, np.where(counted, values, np.inf).min(axis=0)),
        maximum=np.where(none, np.nan, np.where(counted, values, -np.inf).max(axis=0)),
        non_finite=(present & ~counted).sum(axis=0),
    )


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
