"""How steady do hidden norms stay? Stability measures of relative-norm traces, with intervals; needs no torch.

Everything is said of l = ln(relative norm), one value per recorded step and layer. Seeds are the unit, in Student's
intervals and in the bootstrap's: several runs of one seed in one group count once, by their mean. A run that diverged,
or whose trace holds a value that is not finite, has no spread: it leaves every estimate, and it is named in `broken`.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rotrnn_core.intervals import Estimate, deviation_with_interval, mean_with_interval

TOLERANCE = 0.1
"""A norm within 10% counts as the same: for the settling step, and for "nearly constant"."""
REFERENCE = "rotrnn"
"""The cell that every LRU is compared with."""

Condition = tuple[str, int]
"""Task and depth: what is equal in a paired difference."""
Of = Callable[["Trace"], float | None]
"""A number of one trace; None where it has none."""


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
class OverDepth:
    """The spread over depth of one cell, by the seeds that have every one of the depths."""

    task: str
    cell: str
    depths: tuple[int, ...]
    value: Estimate


@dataclass(frozen=True)
class Report:
    """All that the traces say about stability; `paired` is of the spread over training."""

    measures: tuple[Measure, ...]
    rows: tuple[Row, ...]
    paired: tuple[Paired, ...]
    paired_settling: tuple[Paired, ...]
    over_depth: tuple[OverDepth, ...]
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

DEPTH_MEASURE = Measure(
    "spread_over_depth",
    "Spread over depth",
    "max - min over depths of ln(relative norm) at the last recorded step, averaged over layers; mean over the seeds "
    "that have every depth, t interval",
    "ln",
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
    return Report(
        measures=MEASURES,
        rows=tuple(rows),
        paired=tuple(_paired(whole, "spread_over_training", spread_over_training)),
        paired_settling=tuple(_paired(whole, "settling_step", settling_step)),
        over_depth=tuple(_over_depth(whole)),
        accuracy=tuple(accuracy),
        broken=tuple(trace for trace in every if trace.broken),
    )


def _measured(group: Sequence[Trace], *, single: bool) -> Iterable[tuple[str, Estimate]]:
    def mean(of: Of) -> Estimate:
        return mean_with_interval(list(_by_seed(group, of).values()), least=0.0)

    yield "spread_over_training", mean(spread_over_training)
    if not single:
        yield "spread_over_layers", mean(spread_over_layers)
    yield "spread_over_seeds", deviation_with_interval(list(_by_seed(group, final_level).values()))
    yield "settling_step", mean(settling_step)


def _by_seed(traces: Iterable[Trace], of: Of) -> dict[int, float]:
    values: dict[int, list[float]] = defaultdict(list)
    for trace in traces:
        value = of(trace)
        if value is not None and math.isfinite(value):
            values[trace.seed].append(value)
    return {seed: float(np.mean(same)) for seed, same in values.items()}


def by_condition(traces: Iterable[Trace], of: Of = spread_over_training) -> dict[Condition, dict[int, float]]:
    """A number of each trace, by default its spread over training, per task and depth, and there per seed."""
    groups: dict[Condition, list[Trace]] = defaultdict(list)
    for trace in traces:
        groups[trace.task, trace.depth].append(trace)
    return {condition: _by_seed(group, of) for condition, group in groups.items()}


def over_conditions(values: Mapping[Condition, Mapping[int, float]]) -> list[float]:
    """One number per seed, its mean over the conditions; only seeds that have them all, so that none weighs more."""
    if not values:
        return []
    complete = set.intersection(*(set(seeds) for seeds in values.values()))
    return [float(np.mean([seeds[seed] for seeds in values.values()])) for seed in sorted(complete)]


def differences(
    traces: Sequence[Trace], label: str, of: Of = spread_over_training
) -> dict[Condition, dict[int, float]]:
    """A number of a cell minus RotRNN's, where both have a run of the same task, depth and seed."""
    reference = by_condition((t for t in traces if t.cell == REFERENCE), of)
    other = by_condition((t for t in traces if t.cell == label), of)
    return {
        condition: {s: other[condition][s] - reference[condition][s] for s in sorted(shared)}
        for condition in other
        if condition in reference and (shared := set(other[condition]) & set(reference[condition]))
    }


def _paired(traces: Sequence[Trace], measure: str, of: Of) -> Iterable[Paired]:
    for label in sorted({t.cell for t in traces if t.cell.startswith("lru")}):
        for task in sorted({t.task for t in traces}):
            found = differences([t for t in traces if t.task == task], label, of)
            for (_, depth), seeds in found.items():
                yield Paired(task, label, depth, measure, mean_with_interval(list(seeds.values())))
            if found:
                yield Paired(task, label, None, measure, mean_with_interval(over_conditions(found)))


def _over_depth(traces: Sequence[Trace]) -> Iterable[OverDepth]:
    for task, cell in dict.fromkeys((t.task, t.cell) for t in traces):
        levels = by_condition((t for t in traces if (t.task, t.cell) == (task, cell)), final_level)
        if len(levels) > 1:
            shared = sorted(set.intersection(*(set(seeds) for seeds in levels.values())))
            spreads = [float(np.ptp([seeds[seed] for seeds in levels.values()])) for seed in shared]
            depths = tuple(sorted(depth for _, depth in levels))
            yield OverDepth(task, cell, depths, mean_with_interval(spreads, least=0.0))
