"""Where does a log axis begin and end, and which round numbers stand on it?"""

import math
from collections.abc import Iterable, Sequence

from client.results import HiddenNormGroup

DIGITS: tuple[tuple[float, ...], ...] = (
    (1, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35, 1.4, 1.5, 2, 3, 4, 5, 6, 7, 7.5, 8, 8.5, 9, 9.5),
    (1, 1.1, 1.2, 1.3, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9),
    (1, 1.2, 1.5, 2, 3, 4, 6, 8),
    (1, 1.5, 2, 3, 5, 7),
    (1, 2, 5),
    (1, 3),
    (1,),
)
"""Leading digits of round numbers, the densest first."""


LEAST = 1.2
"""An axis reaches at least this factor to both sides of its middle, so that no noise looks like a trend."""


def limits(groups: Sequence[HiddenNormGroup], middle: float | None = None) -> tuple[float, float]:
    """The range that holds every mean, every seed and the middle, which is that of the values where none is given.

    An interval is followed only some way beyond what was measured: with few seeds it may be wider than all of it.
    """
    drawn = [value for group in groups for value in group.mean]
    drawn += [value for group in groups for run in group.single for value in run.values]
    positive = list(_positive(drawn)) or [1.0]
    middle = middle or math.sqrt(min(positive) * max(positive))
    low, high = min([*positive, middle / LEAST]), max([*positive, middle * LEAST])
    slack = max((high / low) ** 0.2, 1.05)
    bounds = list(_positive(bound for group in groups for bound in (*group.low, *group.high) if bound is not None))
    lows = [max(bound, low / slack) for bound in bounds]
    highs = [min(bound, high * slack) for bound in bounds]
    return min([low, *lows]) / 1.03, max([high, *highs]) * 1.03


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers between low and high: as many as there can be, but no more than `most`."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for digits in DIGITS:
        numbers = [float(f"{digit}e{decade}") for decade in range(first, last + 1) for digit in digits]
        inside = [number for number in numbers if low <= number <= high]
        if len(inside) <= most:
            return inside
    every = -(-(last - first + 1) // most)
    decades = [10.0**decade for decade in range(first, last + 1) if decade % every == 0]
    return [power for power in decades if low <= power <= high]


def _positive(values: Iterable[float]) -> Iterable[float]:
    return (value for value in values if math.isfinite(value) and value > 0)
