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
class Verdict:
    """Whether a claim is seen in the numbers: True, False, or None for undecided; with the numbers in words."""

    seen: bool | None
    text: str


@dataclass(frozen=True)
class Claim:
    """The comparison's claim: RotRNN's norm stays nearly constant in training, LRU's does not."""

    rotrnn_constant: Verdict
    lru_not_constant: Verdict
    sentence: str


@dataclass(frozen=True)
class Report:
    """All that the traces say about stability."""

    measures: tuple[Measure, ...]
    rows: tuple[Row, ...]
    paired: tuple[Paired, ...]
    claim: Claim
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
    """Every measure per task, cell and depth, the paired differences, and whether the claim is seen.

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
    return Report(MEASURES, tuple(rows), tuple(_paired(whole)), _claim(every), tuple(accuracy), broken)


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


Condition = tuple[str, int]


def _by_condition(traces: Iterable[Trace]) -> dict[Condition, dict[int, float]]:
    groups: dict[Condition, list[Trace]] = defaultdict(list)
    for trace in traces:
        groups[trace.task, trace.depth].append(trace)
    return {condition: _by_seed(group, spread_over_training) for condition, group in groups.items()}


def _over_conditions(values: Mapping[Condition, Mapping[int, float]]) -> list[float]:
    """One number per seed, its mean over the conditions; only seeds that have them all, so that none weighs more."""
    if not values:
        return []
    complete = set.intersection(*(set(seeds) for seeds in values.values()))
    return [float(np.mean([seeds[seed] for seeds in values.values()])) for seed in sorted(complete)]


def _differences(traces: Sequence[Trace], label: str) -> dict[Condition, dict[int, float]]:
    reference = _by_condition(t for t in traces if t.cell == REFERENCE)
    other = _by_condition(t for t in traces if t.cell == label)
    return {
        condition: {s: other[condition][s] - reference[condition][s] for s in sorted(shared)}
        for condition in other
        if condition in reference and (shared := set(other[condition]) & set(reference[condition]))
    }


def _paired(traces: Sequence[Trace]) -> Iterable[Paired]:
    for label in sorted({t.cell for t in traces if t.cell.startswith("lru")}):
        for task in sorted({t.task for t in traces}):
            differences = _differences([t for t in traces if t.task == task], label)
            for (_, depth), seeds in differences.items():
                difference = mean_with_interval(list(seeds.values()))
                yield Paired(task, label, depth, "spread_over_training", difference)
            if differences:
                pooled = mean_with_interval(_over_conditions(differences))
                yield Paired(task, label, None, "spread_over_training", pooled)


def _claim(traces: Sequence[Trace]) -> Claim:
    constant = _rotrnn_verdict([t for t in traces if t.cell == REFERENCE])
    labels = sorted({t.cell for t in traces if t.cell.startswith("lru")})
    single = [_lru_verdict(traces, label) for label in labels]
    answers = {verdict.seen for verdict in single}
    moving = Verdict(
        answers.pop() if len(answers) == 1 else None,
        " ".join(verdict.text for verdict in single) or "There is no finished LRU run.",
    )
    both = {constant.seen, moving.seen}
    head = "seen" if both == {True} else "not seen" if False in both else "undecided"
    sentence = f"RotRNN's norm stays nearly constant and LRU's does not: {head}. {constant.text} {moving.text}"
    return Claim(constant, moving, sentence)


def _rotrnn_verdict(traces: Sequence[Trace]) -> Verdict:
    """Seen: the interval of exp(spread over training) ends at or below 1.1. Not seen: it begins above, or a run broke.

    The spread is averaged per seed over tasks and depths; the interval is over the seeds that have them all.
    """
    if not traces:
        return Verdict(None, "There is no finished RotRNN run.")
    spread = _pooled_spread(traces)
    broke = any(trace.broken for trace in traces)
    text = f"{_moved(traces, 'RotRNN')}, {_factor(spread)}"
    if broke or _above(spread):
        return Verdict(False, f"{text}: not nearly constant, which would be a factor of at most {1 + TOLERANCE:g}.")
    if _below(spread):
        return Verdict(True, f"{text}: nearly constant, a factor of at most {1 + TOLERANCE:g}.")
    return Verdict(None, f"{text}: undecided whether that is at most a factor of {1 + TOLERANCE:g}.")


def _lru_verdict(traces: Sequence[Trace], label: str) -> Verdict:
    """Seen: the interval of exp(spread) begins above 1.1 and that of the paired difference to RotRNN above 0.

    Not seen: one of the two lies wholly on the other side.
    """
    own = [t for t in traces if t.cell == label]
    spread = _pooled_spread(own)
    whole = [t for t in traces if not t.broken]
    difference = mean_with_interval(_over_conditions(_differences(whole, label)))
    text = f"{_moved(own, _titled(label))}, {_factor(spread)}; {_paired_words(difference)}"
    if _above(spread) and difference.low is not None and difference.low > 0:
        return Verdict(True, f"{text}: it does not stay nearly constant and moves more than RotRNN.")
    if _below(spread):
        return Verdict(False, f"{text}: it stays nearly constant too.")
    if difference.high is not None and difference.high < 0:
        return Verdict(False, f"{text}: it moves less than RotRNN.")
    return Verdict(None, f"{text}: undecided.")


def _pooled_spread(traces: Sequence[Trace]) -> Estimate:
    return mean_with_interval(_over_conditions(_by_condition(t for t in traces if not t.broken)), least=0.0)


def _above(spread: Estimate) -> bool:
    return spread.low is not None and spread.low > math.log1p(TOLERANCE)


def _below(spread: Estimate) -> bool:
    return spread.high is not None and spread.high <= math.log1p(TOLERANCE)


def _titled(label: str) -> str:
    return f"LRU ({label.removeprefix('lru-')})"


def _moved(traces: Sequence[Trace], title: str) -> str:
    whole = [t for t in traces if not t.broken]
    if not whole:
        return f"{title} diverged or lost its trace in all of {len(traces)} runs"
    low = min(float(t.log_norms.min()) for t in whole)
    high = max(float(t.log_norms.max()) for t in whole)
    within = f"{_ratio(low)}-{_ratio(high)}"
    said = f"The relative norm of {title} stayed within {within} in {len(whole)} of {len(traces)} runs"
    lost = [f"depth {t.depth} seed {t.seed}" for t in traces if t.broken]
    return f"{said} ({len(lost)} diverged or not finite: {', '.join(lost)})" if lost else said


def _factor(spread: Estimate) -> str:
    if spread.estimate is None:
        return "with no seed that has every depth"
    seeds = f"{spread.n} seed{'s' if spread.n != 1 else ''}"
    said = f"moving by a factor of {_ratio(spread.estimate)} in training"
    if spread.low is None or spread.high is None:
        return f"{said} ({seeds}, too few for an interval)"
    return f"{said} (95% interval {_ratio(spread.low)}-{_ratio(spread.high)}, {seeds})"


def _ratio(logarithm: float) -> str:
    """exp(logarithm) in three figures or so, also where a float cannot hold it."""
    if abs(logarithm) > 700:
        return f"e^{logarithm:.0f}"
    ratio = math.exp(logarithm)
    return f"{ratio:.2f}" if 0.1 <= ratio < 100 else f"{ratio:.2e}"


def _paired_words(difference: Estimate) -> str:
    if difference.estimate is None:
        return "no RotRNN run to compare with at equal depth and seed"
    if difference.low is None or difference.high is None:
        return f"{difference.estimate:+.3f} in ln against RotRNN, {difference.n} seed, too few for an interval"
    interval = f"{difference.low:+.3f} to {difference.high:+.3f}"
    return f"{difference.estimate:+.3f} in ln against RotRNN (95% interval {interval}, {difference.n} seeds)"
