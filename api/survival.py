"""How many seeds still train soundly at a step? Kaplan and Meier's share, with an interval of Wilson's form."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import ndtri

from rotrnn_core.intervals import CONFIDENCE


@dataclass(frozen=True)
class Life:
    """A run up to a step, where it was lost (diverged or stuck) or is known to be sound."""

    step: int
    lost: bool


@dataclass(frozen=True)
class Survival:
    """The share that is not lost after each step at which one was lost, after step 0, and after the last known step."""

    steps: list[int]
    at_risk: list[int]
    lost: list[int]
    share: list[float]
    low: list[float]
    high: list[float]


def survival(lives: Sequence[Life]) -> Survival:
    """The share of runs that are not lost, step by step; a run that still trains counts up to its present step.

        S(s) = product over steps t <= s of (1 - lost(t) / at_risk(t))

    The interval is Wilson's for the number of runs that would give S the same variance (Greenwood's) without those
    that still train; where every run has ended, that number is n and the interval Wilson's own.

    Source:
        K. Rothman, Estimation of confidence limits for the cumulative probability of survival, 1978.
    """
    found = Survival([], [], [], [], [], [])
    share, greenwood = 1.0, 0.0
    ends = sorted({0, *(life.step for life in lives if life.lost), max((life.step for life in lives), default=0)})
    for step in ends:
        at_risk = sum(life.step >= step for life in lives)
        lost = sum(life.lost and life.step == step for life in lives)
        if lost:
            share *= 1 - lost / at_risk
            greenwood += lost / (at_risk * (at_risk - lost)) if at_risk > lost else 0.0
        known = (1 - share) / (share * greenwood) if greenwood and share else float(at_risk if not lost else len(lives))
        low, high = wilson(share, known)
        for column, value in zip(vars(found).values(), (step, at_risk, lost, share, low, high), strict=True):
            column.append(value)
    return found


def wilson(share: float, n: float) -> tuple[float, float]:
    """Wilson's 95% interval of a share of n."""
    if n <= 0:
        return 0.0, 1.0
    z2 = float(ndtri(0.5 + CONFIDENCE / 2)) ** 2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return max(0.0, middle - half), min(1.0, middle + half)
