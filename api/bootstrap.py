"""How sure is a mean over seeds, without assuming a bell curve? The bootstrap's interval, for many means at once.

Percentiles of resampled means below LEAST_FOR_BCA seeds, and from there on BCa: bias-corrected and accelerated.

Source:
    B. Efron, Better bootstrap confidence intervals, JASA 82 (1987), section 3 and equation 6.6 for the acceleration.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from rotrnn_core.intervals import CONFIDENCE, resamples

Floats = NDArray[np.float64]
LEAST_FOR_BCA = 8
_CELLS_AT_ONCE = 2_000


def mean_intervals(values: Floats) -> tuple[Floats, Floats]:
    """The bootstrap's 95% interval of the mean in each column.

    Args:
        values: (seeds, columns); NaN where a seed has no value.

    Returns:
        Lower and upper bounds, (columns,); NaN below two values.
    """
    low, high = (np.full(values.shape[1], np.nan) for _ in range(2))
    counted = np.isfinite(values)
    patterns, of = np.unique(counted, axis=1, return_inverse=True)
    for place, pattern in enumerate(patterns.T):
        if pattern.sum() < 2:
            continue
        columns = np.flatnonzero(of == place)
        for start in range(0, columns.size, _CELLS_AT_ONCE):
            some = columns[start : start + _CELLS_AT_ONCE]
            low[some], high[some] = _whole(values[np.ix_(pattern, some)])
    return low, high


def _whole(values: Floats) -> tuple[Floats, Floats]:
    n = len(values)
    drawn = resamples([float(place) for place in range(n)]).astype(np.intp)
    weights = np.stack([np.bincount(row, minlength=n) for row in drawn]) / n
    means = np.sort(weights @ values, axis=0)
    tail = (1 - CONFIDENCE) / 2
    levels = np.repeat([[tail], [1 - tail]], values.shape[1], axis=1)
    if n >= LEAST_FOR_BCA:
        levels = _accelerated(values, means, levels)
    low, high = (_quantile(means, level) for level in levels)
    same = np.ptp(values, axis=0) == 0
    return np.where(same, values[0], low), np.where(same, values[0], high)


def _accelerated(values: Floats, means: Floats, levels: Floats) -> Floats:
    """The levels whose quantiles BCa takes instead."""
    n, mean = len(values), values.mean(axis=0)
    below = ((means < mean).sum(axis=0) + (means == mean).sum(axis=0) / 2) / len(means)
    bias = ndtri(np.clip(below, 0.5 / len(means), 1 - 0.5 / len(means)))
    left_out = (values.sum(axis=0) - values) / (n - 1)
    away = left_out.mean(axis=0) - left_out
    with np.errstate(invalid="ignore", divide="ignore"):
        acceleration = np.nan_to_num((away**3).sum(axis=0) / (6 * (away**2).sum(axis=0) ** 1.5))
        shifted = bias + ndtri(levels)
        moved: Floats = ndtr(bias + shifted / (1 - acceleration * shifted))
    return moved


def _quantile(ordered: Floats, levels: Floats) -> Floats:
    """The quantile of each column at its own level, between neighbours on a straight line."""
    at = levels * (len(ordered) - 1)
    below = np.floor(at).astype(np.intp)
    above = np.minimum(below + 1, len(ordered) - 1)
    columns = np.arange(ordered.shape[1])
    low, high = ordered[below, columns], ordered[above, columns]
    found: Floats = low + (at - below) * (high - low)
    return found
