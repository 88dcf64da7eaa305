"""Do two cells differ, seed by seed? Paired differences with p-values corrected for looking more than once."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from rotrnn_core.intervals import Estimate, mean_with_interval


@dataclass(frozen=True)
class Difference:
    """One value minus another at equal seed.

    p is that of the two-sided paired t test; effect_size the mean difference over its standard deviation (Cohen's d_z);
    both are None below two seeds, or where all differences are equal.
    """

    value: Estimate
    effect_size: float | None
    p: float | None


def paired(values: Mapping[int, float], reference: Mapping[int, float]) -> Difference:
    """values - reference over the seeds, in order, that have a finite value of both."""
    shared = sorted(set(values) & set(reference))
    found = [values[seed] - reference[seed] for seed in shared]
    found = [difference for difference in found if math.isfinite(difference)]
    with np.errstate(over="ignore", invalid="ignore"):
        value = mean_with_interval(found)
        deviation = float(np.std(found, ddof=1)) if len(found) >= 2 else 0.0
    if value.estimate is None or deviation == 0 or not math.isfinite(deviation):
        return Difference(value, None, None)
    effect = value.estimate / deviation
    return Difference(value, effect, float(2 * stdtr(len(found) - 1, -abs(effect) * math.sqrt(len(found)))))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """The p-values of one family, corrected so that any false finding among them has at most their probability.

        adjusted of the i-th smallest of m = max over j <= i of min(1, (m - j + 1) p_j)

    Source:
        S. Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statistics 6 (1979).
    """
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        adjusted[place] = largest
    return adjusted
