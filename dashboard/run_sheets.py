"""Which tables stand on the page of one run, beside its curves? What happened, what is kept, and where it trained."""

from collections.abc import Sequence
from datetime import tzinfo

from client import Attempt, Checkpoint, Event
from dashboard.sheets import Sheet
from dashboard.words import day_and_clock


def events_sheet(events: Sequence[Event], zone: tzinfo) -> Sheet:
    """One line per thing that happened, first to last."""
    return {
        "When": [f"{day_and_clock(one.at, zone)}:{one.at:%S}" for one in events],
        "Attempt": [one.attempt for one in events],
        "What": [one.kind.replace("_", " ") for one in events],
        "In words": [one.message for one in events],
    }


def checkpoints_sheet(found: Sequence[Checkpoint], zone: tzinfo) -> Sheet:
    """One line per checkpoint that is kept, the furthest first."""
    return {
        "Step": [one.step for one in found],
        "Attempt": [one.attempt for one in found],
        "Size": [size(one.size_bytes) for one in found],
        "Written": [day_and_clock(one.created_at, zone) for one in found],
        "Path": [one.path for one in found],
        "SHA-256": [one.sha256 for one in found],
    }


def environment_sheet(attempts: Sequence[Attempt]) -> Sheet:
    """One line per fact, one column per attempt that said where it trained."""
    told = [one for one in attempts if one.environment]
    names = list(dict.fromkeys(name for one in told for name in one.environment or {}))
    sheet: Sheet = {"Fact": [name.replace("_", " ") for name in names]}
    for one in told:
        known = one.environment or {}
        sheet[f"Attempt {one.number}"] = [str(known.get(name, "")) for name in names]
    return sheet if told else {}


def size(count: int) -> str:
    """Bytes in a unit that people read."""
    value, units = float(count), ("B", "KiB", "MiB", "GiB")
    for unit in units[:-1]:
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} {units[-1]}"
