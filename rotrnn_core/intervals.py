"""How sure is a number over seeds? Estimates with 95% intervals, of Student's and by resampling; needs no torch."""

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, stdtrit

CONFIDENCE = 0.95
RESAMPLES = 2_000
"""Resamples drawn where there are more of them."""
_MOST_ENUMERATED = 5**5


@dataclass(frozen=True)
class Estimate:
    """A value with its 95% interval over n seeds, and the bootstrap's; None stands where n is too small to say."""

    estimate: float | None
    low: float | None
    high: float | None
    n: int
    bootstrap_low: float | None = None
    bootstrap_high: float | None = None


def mean_with_interval(values: Sequence[float], *, least: float = -math.inf) -> Estimate:
    """The mean m and its t interval m -+ t(.975, n - 1) s / sqrt(n), s with n - 1 degrees of freedom.

    The bootstrap's interval: quantiles .025 and .975 of the means of `resamples`.

    Args:
        values: One number per seed.
        least: No mean can be below this; the interval is cut there.

    Returns:
        The mean (None without values), the intervals (None below two values), and n.
    """
    n = len(values)
    if n == 0:
        return Estimate(None, None, None, 0)
    mean = float(np.mean(values))
    if n == 1:
        return Estimate(mean, None, None, 1)
    half = float(stdtrit(n - 1, 0.5 + CONFIDENCE / 2)) * float(np.std(values, ddof=1)) / math.sqrt(n)
    low, high = _middle(resamples(values).mean(axis=1))
    return Estimate(mean, max(least, mean - half), mean + half, n, low, high)


def deviation_with_interval(values: Sequence[float]) -> Estimate:
    """The standard deviation s and its interval for normal values, s sqrt((n - 1) / chi2(q, n - 1)), q = .975, .025.

    The bootstrap's interval: quantiles .025 and .975 of the deviations of `resamples`; below some ten seeds it is too
    narrow, since a resample repeats values.

    Returns:
        s with n - 1 degrees of freedom and its intervals (all None below two values), and n.
    """
    n = len(values)
    if n < 2:
        return Estimate(None, None, None, n)
    deviation = float(np.std(values, ddof=1))
    tail = (1 - CONFIDENCE) / 2
    low, high = (deviation * math.sqrt((n - 1) / float(chdtri(n - 1, upper))) for upper in (tail, 1 - tail))
    return Estimate(deviation, low, high, n, *_middle(resamples(values).std(axis=1, ddof=1)))


def resamples(values: Sequence[float]) -> NDArray[np.float64]:
    """Samples of n values out of n, drawn with replacement, (resamples, n).

    All n^n of them up to five values, else 2,000 from a fixed seed: the same values give the same resamples.
    """
    return np.asarray(values, dtype=np.float64)[_places(len(values))]


@functools.cache
def _places(n: int) -> NDArray[np.intp]:
    if n**n <= _MOST_ENUMERATED:
        return np.array(list(itertools.product(range(n), repeat=n)))
    return np.random.default_rng(0).integers(n, size=(RESAMPLES, n))


def _middle(values: NDArray[np.float64]) -> tuple[float, float]:
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)
