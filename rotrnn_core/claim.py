"""Is the comparison's claim seen in the numbers? A verdict on each half, computed, with the numbers in words.

The claim: RotRNN's hidden norm stays nearly constant in training, LRU's does not. "Nearly constant" means that the
relative norm moves by a factor of at most 1.1, the same 10% that the settling step allows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rotrnn_core.intervals import Estimate, mean_with_interval
from rotrnn_core.stability import REFERENCE, TOLERANCE, Trace, by_condition, differences, over_conditions


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


def claim(traces: Sequence[Trace]) -> Claim:
    """Both halves of the claim, judged on these traces."""
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
    difference = mean_with_interval(over_conditions(differences(whole, label)))
    text = f"{_moved(own, _titled(label))}, {_factor(spread)}; {_paired_words(difference)}"
    if _above(spread) and difference.low is not None and difference.low > 0:
        return Verdict(True, f"{text}: it does not stay nearly constant and moves more than RotRNN.")
    if _below(spread):
        return Verdict(False, f"{text}: it stays nearly constant too.")
    if difference.high is not None and difference.high < 0:
        return Verdict(False, f"{text}: it moves less than RotRNN.")
    return Verdict(None, f"{text}: undecided.")


def _pooled_spread(traces: Sequence[Trace]) -> Estimate:
    return mean_with_interval(over_conditions(by_condition(t for t in traces if not t.broken)), least=0.0)


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
