"""In which words does a page speak? Statistics, reasons, times and numbers as people read them."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

TIMES = "\u00d7"
DASH = "\u2013"
MINUS = "\u2212"
DOT = "\u00b7"
NOTHING = "\u2014"


@dataclass(frozen=True)
class Statistic:
    """A statistic of the hidden-norm trace: its name on the wire, its title, axis and meaning."""

    name: str
    title: str
    axis: str
    meaning: str
    reference: str | None


STATISTICS = (
    Statistic(
        "relative",
        "Relative",
        "norm / norm before training",
        "The length of a layer's whole hidden state, divided by its value before the first training step: "
        "1 means unchanged. The only one of the three that compares cells of different kinds.",
        "as before training",
    ),
    Statistic(
        "per_head",
        "Per head",
        "norm of one head",
        "The length of each head's hidden state, averaged over heads (in an LRU each complex channel is a head). "
        "RotRNN's theory says 1 for white input.",
        "RotRNN's theory, white input",
    ),
    Statistic(
        "whole",
        "Whole",
        "norm of the whole layer",
        "The length of a layer's whole hidden state, as it is. It grows with the size of the state, so compare its "
        "course, not its level, between cells.",
        None,
    ),
)
BY_TITLE = {statistic.title: statistic for statistic in STATISTICS}

FAILURES = {
    "code_error": "The training code raised an error.",
    "out_of_memory": "The device ran out of memory; a smaller batch, width or state may fit.",
    "worker_lost": "The worker that trained it gave no sign of life any more.",
    "stalled": "Training made no progress for too long.",
    "timeout": "It ran past its deadline.",
    "bad_config": "Its configuration cannot be trained.",
    "data_missing": "Its data set could not be had.",
}


def number(value: float | None, digits: int = 3) -> str:
    """A number in about three figures; a value that is not finite says so."""
    if value is None:
        return NOTHING
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return f"{'' if value > 0 else MINUS}infinity"
    size = abs(value)
    if value == int(value) and size < 1e15:
        return f"{int(value):,}"
    if size != 0 and (size >= 1e6 or size < 1e-3):
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{max(0, digits - 1 - math.floor(math.log10(size)))}f}"


def ratio(logarithm: float | None) -> str:
    """exp(logarithm) as a factor; a spread of .07 reads as a factor of 1.073, that is 7.3 %."""
    if logarithm is None or math.isnan(logarithm):
        return NOTHING
    if logarithm > 50:
        return f"{TIMES}e^{logarithm:.0f}"
    value = math.exp(logarithm)
    decimals = 3 if value < 1.2 else 2 if value < 10 else 1 if value < 100 else 0
    return f"{TIMES}{value:,.{decimals}f}" if value < 1e5 else f"{TIMES}{value:.1e}"


def percent(share: float | None, digits: int = 1) -> str:
    """A share in [0, 1] in percent."""
    return NOTHING if share is None or not math.isfinite(share) else f"{100 * share:.{digits}f} %"


def interval(low: str, high: str) -> str:
    """Two bounds as one text."""
    return f"{low} to {high}"


def duration(seconds: float | None) -> str:
    """A length of time in its two largest units."""
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    whole = round(max(0.0, seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest and minutes < 10 else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{hours // 24} d {hours % 24} h"


def clock(moment: datetime, zone: tzinfo = UTC) -> str:
    """Hours, minutes and seconds in the reader's zone."""
    return f"{moment.astimezone(zone):%H:%M:%S}"


def day_and_clock(moment: datetime | None, zone: tzinfo = UTC) -> str:
    """Day, month, hours and minutes in the reader's zone."""
    return NOTHING if moment is None else f"{moment.astimezone(zone):%d %b %H:%M}".lstrip("0")


def plural(count: int, noun: str, many: str | None = None) -> str:
    """A count with its noun."""
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


def listed(parts: list[str]) -> str:
    """One, two and three."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""


def plain(text: str) -> str:
    """User text for a place that reads Markdown: every sign that could mean something there is escaped."""
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]()<>#+-.!|~$:^=&" else sign for sign in " ".join(text.split()))
