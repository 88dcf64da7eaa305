"""How does a value look to a person? Durations, shares, numbers and intervals as short text."""

import math
from datetime import UTC, datetime

ABSENT = "-"


def duration(seconds: float | None) -> str:
    """Such as 8 s, 2:05 or 3:12:40; a dash when unknown."""
    if seconds is None or not math.isfinite(seconds):
        return ABSENT
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"


def ago(moment: datetime | None, now: datetime | None = None) -> str:
    """How long ago something was, in its largest unit."""
    if moment is None:
        return ABSENT
    seconds = max(0.0, ((now or datetime.now(UTC)) - moment).total_seconds())
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return f"{int(seconds)} s ago"


def number(value: float | None, digits: int = 4) -> str:
    """A number with its significant digits; NaN and infinities by name."""
    return ABSENT if value is None else f"{value:.{digits}g}"


def percent(share: float | None) -> str:
    """A share in [0, 1] as a percentage."""
    if share is None:
        return ABSENT
    return f"{100 * share:.1f} %" if math.isfinite(share) else str(share)


def size(size_bytes: int) -> str:
    """Bytes in the largest binary unit that leaves at least 1."""
    amount = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"


def plural(count: int, noun: str) -> str:
    """The count with its noun, such as 1 run or 3 runs."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
