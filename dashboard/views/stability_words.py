"""How does the stability page put its numbers? Headline, verdicts, and what each column means."""

from typing import Any

import streamlit as st

from client import Claim, Finding, Run, Stability
from dashboard.palette import StatusLook, cell_title
from dashboard.words import interval, listed, plain, plural, ratio

_VERDICTS = {
    True: StatusLook("seen", "The numbers show it.", "check_circle", "\u2713", "green"),
    False: StatusLook("not seen", "The numbers show the opposite.", "cancel", "\u2715", "red"),
    None: StatusLook("undecided", "The numbers do not decide it yet.", "help", "?", "gray"),
}


def verdict(finding: Finding) -> StatusLook:
    """A finding in a word, an icon and a colour."""
    return _VERDICTS[finding.seen]


def headline(claim: Claim) -> str:
    """The claim's verdict as the page's first sentence."""
    both = {claim.rotrnn_constant.seen, claim.lru_not_constant.seen}
    if both == {True}:
        return "RotRNN's norm stays nearly constant and LRU's does not."
    if False in both:
        return "These runs do not show that RotRNN's norm stays nearly constant while LRU's does not."
    return "Not decided yet: does RotRNN's norm stay nearly constant while LRU's does not?"


def gist(numbers: Stability) -> str:
    """What the verdict rests on, in a line: how far RotRNN's norm moved, and each LRU's against it over all depths."""
    parts = [plain(numbers.claim.rotrnn_constant.text.split(": ")[0].rstrip(".")) + "."]
    for row in numbers.paired:
        if row.depth is None and row.measure == "spread_over_training" and row.difference is not None:
            bounds = (
                f" (95% {interval(ratio(row.low), ratio(row.high))}, {plural(row.n, 'seed')})"
                if row.low is not None and row.high is not None
                else f" ({plural(row.n, 'seed')}, too few for an interval)"
            )
            parts.append(f"{cell_title(row.cell)}'s factor is {ratio(row.difference)} that of RotRNN{bounds}.")
    return " ".join(parts)


def diverged(runs: list[Run]) -> str:
    """Which runs diverged, in one line."""
    named = [
        f"{cell_title(run.cell)} at depth {run.depth}, seed {run.seed}"
        + (f" (step {run.divergence.step:,})" if run.divergence else "")
        for run in sorted(runs, key=lambda r: (r.cell, r.depth, r.seed))
    ]
    more = f" and {len(named) - 6} more" if len(named) > 6 else ""
    shown = ", ".join(named[:6]) + more if more else listed(named)
    return f"{plural(len(runs), 'diverged seed')}, drawn and counted, never averaged away: {shown}."


def stability_columns(numbers: Stability, cell: Any) -> dict[str, Any]:
    """Widths and help of the table of stability numbers; `cell` is how cells look."""
    config: dict[str, Any] = {
        "Depth": st.column_config.NumberColumn(width=60, help="Number of layers.", pinned=True),
        "Cell": cell,
        "Seeds": st.column_config.NumberColumn(width=60, help="n: the seeds that count; diverged ones do not."),
        "Test accuracy": st.column_config.TextColumn(help="Share right on the test split: mean (95% interval)."),
    }
    for measure in numbers.measures:
        as_factor = " Written as a factor: \u00d71.07 is 7 % from smallest to largest." if measure.unit == "ln" else ""
        config[measure.title] = st.column_config.TextColumn(help=f"{measure.definition}.{as_factor}")
    return config


def paired_columns(cell: Any) -> dict[str, Any]:
    """Widths and help of the table of paired differences; `cell` is how cells look."""
    return {
        "Cell": cell,
        "Depth": st.column_config.TextColumn(width=70),
        "Moves, against RotRNN": st.column_config.TextColumn(help="exp(difference): the ratio of the two factors."),
        "Difference, ln": st.column_config.TextColumn(help="Difference of the two spreads, in natural logarithms."),
        "Seeds": st.column_config.NumberColumn(width=70, help="n: pairs of equal depth and seed."),
        "Seen": st.column_config.TextColumn(help="Decided when the interval lies on one side of no difference."),
        "Settles later by, steps": st.column_config.TextColumn(
            width=210, help="The LRU's settling step minus RotRNN's: mean (95% interval)."
        ),
    }


def over_depth_columns(cell: Any) -> dict[str, Any]:
    """Widths and help of the table over depths; `cell` is how cells look."""
    return {
        "Cell": cell,
        "Depths": st.column_config.TextColumn(width=130, help="Numbers of layers that every counted seed has."),
        "Seeds": st.column_config.NumberColumn(width=70, help="n: seeds that have every one of these depths."),
    }


def number_columns() -> dict[str, Any]:
    """Formats of the table of all numbers."""
    plain = st.column_config.NumberColumn
    return {
        "Estimate": plain(format="%.4g"),
        "Low": plain(format="%.4g", help="Lower end of the 95% interval; empty below two seeds."),
        "High": plain(format="%.4g", help="Upper end of the 95% interval; empty below two seeds."),
        "As a factor": plain(format="%.4g", help="exp(estimate), for spreads."),
        "As percent": plain(format="%.3g %%", help="100 (exp(estimate) - 1), for spreads."),
    }
