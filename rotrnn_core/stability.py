"""How steady do hidden norms stay? Stability measures of relative-norm traces, with intervals; needs no torch.

Everything is said of l = ln(relative norm), one value per recorded step and layer. Seeds are the unit: several runs of
one seed in one group count once, by their mean. A run that diverged, or whose trace holds a value that is not finite,
has no spread: it leaves every estimate, and it is named in `broken`.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, stdtrit

CONFIDENCE = 0.95
TOLERANCE = 0.1
"""A norm within 10% counts as the same: for the settling step, and for "nearly constant"."""
REFERENCE = "rotrnn"
"""The cell that every LRU is compared with."""

Condition = tuple[str, int]
"""Task and depth: what is equal in a paired difference."""


@dataclass(frozen=True)
class Trace:
    """The relative norm of one run: steps (recorded,), log_norms (recorded, layers) in natural logarithms."""

    task: str
    cell: str
    depth: int
    seed: int
    steps: NDArray[np.int64]
    log_norms: NDArray[np.float64]
    run_id: str = ""
    diverged: bool = False
    accuracy: float | None = None

    @property
    def broken(self) -> bool:
        """Whether the run diverged, has no trace, or has a value in it that is not finite."""
        return self.diverged or self.log_norms.size == 0 or not bool(np.isfinite(self.log_norms).all())


@dataclass(frozen=True)
class Estimate:
    """A value with its 95% interval over n seeds; None stands where n is too small to say."""

    estimate: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True)
class Measure:
    """What a stability number is, for people."""

    name: str
    title: str
    definition: str
    unit: str


@dataclass(frozen=True)
class Row:
    """One measure of one cell at one depth."""

    task: str
    cell: str
    depth: int
    measure: str
    value: Estimate


@dataclass(frozen=True)
class Paired:
    """Mean difference, an LRU label minus RotRNN, at equal task, depth and seed; depth None: over all depths."""

    task: str
    cell: str
    depth: int | None
    measure: str
    difference: Estimate


@dataclass(frozen=True)
class Report:
    """All that the traces say about stability."""

    measures: tuple[Measure, ...]
    rows: tuple[Row, ...]
    paired: tuple[Paired, ...]
    accuracy: tuple[Row, ...]
    broken: tuple[Trace, ...]


MEASURES = (
    Measure(
        "spread_over_training",
        "Spread over training",
        "max - min over recorded steps of ln(relative norm), per layer, mean over layers; mean over seeds, t interval",
        "ln",
    ),
    Measure(
        "spread_over_layers",
        "Spread over layers",
        "max - min over layers of ln(relative norm) at the last recorded step; mean over seeds, t interval",
        "ln",
    ),
    Measure(
        "spread_over_seeds",
        "Spread over seeds",
        "standard deviation over seeds of ln(relative norm) at the last recorded step, averaged over layers; "
        "chi-square interval",
        "ln",
    ),
    Measure(
        "settling_step",
        "Settling step",
        "first recorded step from which the norm stays within 10% of its last value for good, the latest layer; "
        "mean over seeds, t interval",
        "step",
    ),
)


def spread_over_training(trace: Trace) -> float:
    """How far the norm moves while training: mean over layers of max_s l[s] - min_s l[s]; at least 0."""
    return float(np.ptp(trace.log_norms, axis=0).mean())


def spread_over_layers(trace: Trace) -> float | None:
    """How far layers lie apart at the end: max_k l[last, k] - min_k l[last, k]; None for a single layer."""
    last = trace.log_norms[-1]
    return float(np.ptp(last)) if last.size > 1 else None


def final_level(trace: Trace) -> float:
    """The mean over layers of l at the last recorded step; its deviation over seeds is the spread over seeds."""
    return float(trace.log_norms[-1].mean())


def settling_step(trace: Trace) -> float:
    """The first recorded step s with |exp(l[r] - l[last]) - 1| <= 0.1 for every r >= s; the largest over layers."""
    within = np.abs(np.expm1(trace.log_norms - trace.log_norms[-1])) <= TOLERANCE
    for_good = np.logical_and.accumulate(within[::-1], axis=0)[::-1]
    return float(trace.steps[np.argmax(for_good, axis=0)].max())


def mean_with_interval(values: Sequence[float], *, least: float = -math.inf) -> Estimate:
    """The mean m and its t interval m -+ t(.975, n - 1) s / sqrt(n), s with n - 1 degrees of freedom.

    Args:
        values: One number per seed.
        least: No mean can be below this; the interval is cut there.

    Returns:
        The mean (None without values), the interval (None below two values), and n.
    """
    n = len(values)
    if n == 0:
        return Estimate(None, None, None, 0)
    mean = float(np.mean(values))
    if n == 1:
        return Estimate(mean, None, None, 1)
    half = float(stdtrit(n - 1, 0.5 + CONFIDENCE / 2)) * float(np.std(values, ddof=1)) / math.sqrt(n)
    return Estimate(mean, max(least, mean - half), mean + half, n)


def deviation_with_interval(values: Sequence[float]) -> Estimate:
    """The standard deviation s and its interval for normal values, s sqrt((n - 1) / chi2(q, n - 1)), q = .975, .025.

    Returns:
        s with n - 1 degrees of freedom and its interval (all None below two values), and n.
    """
    n = len(values)
    if n < 2:
        return Estimate(None, None, None, n)
    deviation = float(np.std(values, ddof=1))
    tail = (1 - CONFIDENCE) / 2
    low, high = (deviation * math.sqrt((n - 1) / float(chdtri(n - 1, upper))) for upper in (tail, 1 - tail))
    return Estimate(deviation, low, high, n)


def report(traces: Iterable[Trace]) -> Report:
    """Every measure per task, cell and depth, and the paired differences.

    A cell that records no norms has an accuracy only.
    """
    every = sorted(traces, key=lambda t: (t.task, t.cell, t.depth, t.seed, t.run_id))
    whole = [trace for trace in every if not trace.broken]
    conditions = list(dict.fromkeys((t.task, t.cell, t.depth) for t in every))
    rows: list[Row] = []
    accuracy: list[Row] = []
    for condition in conditions:
        group = [t for t in every if (t.task, t.cell, t.depth) == condition]
        if any(t.log_norms.size for t in group):
            counted = [t for t in group if not t.broken]
            rows += (Row(*condition, name, value) for name, value in _measured(counted, single=condition[2] == 1))
        value = mean_with_interval(list(_by_seed(group, lambda t: t.accuracy).values()))
        accuracy.append(Row(*condition, "test_accuracy", value))
    broken = tuple(trace for trace in every if trace.broken)
    return Report(MEASURES, tuple(rows), tuple(_paired(whole)), tuple(accuracy), broken)


def _measured(group: Sequence[Trace], *, single: bool) -> Iterable[tuple[str, Estimate]]:
    def mean(of: Callable[[Trace], float | None]) -> Estimate:
        return mean_with_interval(list(_by_seed(group, of).values()), least=0.0)

    yield "spread_over_training", mean(spread_over_training)
    if not single:
        yield "spread_over_layers", mean(spread_over_layers)
    yield "spread_over_seeds", deviation_with_interval(list(_by_seed(group, final_level).values()))
    yield "settling_step", mean(settling_step)


def _by_seed(traces: Iterable[Trace], of: Callable[[Trace], float | None]) -> dict[int, float]:
    values: dict[int, list[float]] = defaultdict(list)
    for trace in traces:
        value = of(trace)
        if value is not None and math.isfinite(value):
            values[trace.seed].append(value)
    return {seed: float(np.mean(same)) for seed, same in values.items()}


def spread_by_condition(traces: Iterable[Trace]) -> dict[Condition, dict[int, float]]:
    """The spread over training per task and depth, and there per seed."""
    groups: dict[Condition, list[Trace]] = defaultdict(list)
    for trace in traces:
        groups[trace.task, trace.depth].append(trace)
    return {condition: _by_seed(group, spread_over_training) for condition, group in groups.items()}


def over_conditions(values: Mapping[Condition, Mapping[int, float]]) -> list[float]:
    """One number per seed, its mean over the conditions; only seeds that have them all, so that none weighs more."""
    if not values:
        return []
    complete = set.intersection(*(set(seeds) for seeds in values.values()))
    return [float(np.mean([seeds[seed] for seeds in values.values()])) for seed in sorted(complete)]


def spread_differences(traces: Sequence[Trace], label: str) -> dict[Condition, dict[int, float]]:
    """The spread over training of a cell minus RotRNN's, where both have a run of the same task, depth and seed."""
    reference = spread_by_condition(t for t in traces if t.cell == REFERENCE)
    other = spread_by_condition(t for t in traces if t.cell == label)
    return {
        condition: {s: other[condition][s] - reference[condition][s] for s in sorted(shared)}
        for condition in other
        if condition in reference and (shared := set(other[condition]) & set(reference[condition]))
    }


def _paired(traces: Sequence[Trace]) -> Iterable[Paired]:
    for label in sorted({t.cell for t in traces if t.cell.startswith("lru")}):
        for task in sorted({t.task for t in traces}):
            differences = spread_differences([t for t in traces if t.task == task], label)
            for (_, depth), seeds in differences.items():
                difference = mean_with_interval(list(seeds.values()))
                yield Paired(task, label, depth, "spread_over_training", difference)
            if differences:
                pooled = mean_with_interval(over_conditions(differences))
                yield Paired(task, label, None, "spread_over_training", pooled)
