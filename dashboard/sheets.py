"""Which tables stand on the pages? Results of the client in, columns of readable cells out."""

import math
from collections.abc import Callable, Sequence
from datetime import tzinfo
from typing import Any

from client import AccuracyRow, Attempt, Measure, PairedRow, Run, Stability, StabilityRow
from dashboard.palette import cell_title, in_order, status_look
from dashboard.words import FAILURES, NOTHING, day_and_clock, duration, interval, number, percent, ratio

STUCK = "stuck: its validation loss stays at that of a guess"
Sheet = dict[str, list[Any]]
"""Columns by name, all of one length."""


def stability_sheet(stability: Stability) -> Sheet:
    """One line per depth and cell, one column per measure: estimate and interval as people read them."""
    keys = _keys(stability)
    by = {(row.depth, row.cell, row.measure): row for row in stability.rows}
    right = {(row.depth, row.cell): row for row in stability.accuracy}
    lines = []
    for depth, cell in keys:
        found = {m.name: by.get((depth, cell, m.name)) for m in stability.measures}
        line: dict[str, Any] = {"Depth": depth, "Cell": [cell], "Seeds": _seeds(list(found.values()))}
        line |= {m.title: _cell(found[m.name], m) for m in stability.measures}
        line["Test accuracy"] = _accuracy(right.get((depth, cell)))
        lines.append(line)
    return _columns(lines)


def numbers_sheet(stability: Stability) -> Sheet:
    """Every stability number as a number, for sorting and for the CSV."""
    titles = {measure.name: measure for measure in stability.measures}
    order = {key: index for index, key in enumerate(_keys(stability))}
    lines = []
    for row in sorted(stability.rows, key=lambda r: (order[r.depth, r.cell], list(titles).index(r.measure))):
        measure = titles[row.measure]
        spread = measure.unit == "ln" and row.estimate is not None and row.estimate < 300
        factor = math.exp(row.estimate or 0.0) if spread else math.nan
        lines.append(
            {
                "Task": row.task,
                "Cell": cell_title(row.cell),
                "Depth": row.depth,
                "Measure": measure.title,
                "Unit": measure.unit,
                "Estimate": row.estimate,
                "Low": row.low,
                "High": row.high,
                "n": row.n,
                "As a factor": factor,
                "As percent": 100 * (factor - 1),
            }
        )
    return _columns(lines)


def paired_sheet(stability: Stability) -> Sheet:
    """Each LRU against RotRNN at equal seed, per depth and over all: how much further it moves and later it settles."""
    order = in_order({row.cell for row in stability.paired})
    settling = {(row.task, row.cell, row.depth): row for row in stability.paired_settling}
    lines = []
    for row in sorted(stability.paired, key=lambda r: (order.index(r.cell), r.depth is None, r.depth or 0)):
        later = settling.get((row.task, row.cell, row.depth))
        lines.append(
            {
                "Cell": [row.cell],
                "Depth": "all" if row.depth is None else str(row.depth),
                "Moves, against RotRNN": ratio(row.difference),
                "95% interval": interval(ratio(row.low), ratio(row.high)) if _whole(row) else NOTHING,
                "Difference, ln": number(row.difference),
                "Seeds": row.n,
                "Seen": _verdict(row),
                "Settles later by, steps": NOTHING if later is None else _bounded(later, number),
            }
        )
    return _columns(lines)


def over_depth_sheet(stability: Stability) -> Sheet:
    """One line per cell: how far its final norms lie apart over depths."""
    order = in_order({row.cell for row in stability.over_depth})
    return _columns(
        [
            {
                "Cell": [row.cell],
                "Depths": ", ".join(map(str, row.depths)),
                "Largest over smallest": ratio(row.estimate),
                "95% interval": (
                    interval(ratio(row.low), ratio(row.high))
                    if row.low is not None and row.high is not None
                    else NOTHING
                ),
                "Seeds": row.n,
            }
            for row in sorted(stability.over_depth, key=lambda row: order.index(row.cell))
        ]
    )


def runs_sheet(runs: Sequence[Run]) -> Sheet:
    """One line per run, newest first, as the list shows it."""
    return {
        "Status": [[run.status] for run in runs],
        "Run": [title(run) for run in runs],
        "Cell": [[run.cell] for run in runs],
        "Depth": [run.depth for run in runs],
        "Seed": [run.seed for run in runs],
        "Progress": [100 * run.progress for run in runs],
        "Step": [f"{run.step:,} / {run.total_steps:,}" for run in runs],
        "Accuracy": [accuracy(run) for run in runs],
        "Time left": [duration(run.seconds_left) if run.status == "running" else "" for run in runs],
        "Started": [run.started_at for run in runs],
        "Why": [why(run) for run in runs],
    }


def attempts_sheet(attempts: Sequence[Attempt], zone: tzinfo) -> Sheet:
    """One line per attempt: who tried, for how long, and how it ended."""
    return _columns(
        [
            {
                "Attempt": one.number,
                "Worker": one.worker_id or NOTHING,
                "Device": one.device or NOTHING,
                "Began": day_and_clock(one.started_at, zone),
                "Took": duration((one.ended_at - one.started_at).total_seconds()) if one.ended_at else "still at it",
                "From step": one.resumed_from_step or 0,
                "Ended": (one.outcome or "").replace("_", " "),
                "Why": one.reason or FAILURES.get(one.failure_class or "", ""),
            }
            for one in attempts
        ]
    )


def config_sheets(config: dict[str, Any]) -> dict[str, Sheet]:
    """A configuration as one small table per part, nested fields by their dotted name."""
    return {
        part.capitalize(): {
            "Setting": [name for name, _ in _flat(fields)],
            "Value": [value for _, value in _flat(fields)],
        }
        for part, fields in config.items()
        if isinstance(fields, dict) and fields
    }


def title(run: Run) -> str:
    """A run's name, or the beginning of its id."""
    return run.name or f"run {run.id[:8]}"


def accuracy(run: Run) -> float:
    """Test accuracy in percent, validation accuracy while there is none; not a number without either."""
    value = run.latest.get("test_accuracy", run.latest.get("validation_accuracy", math.nan))
    return 100 * value


def why(run: Run) -> str:
    """What a run's status comes from, in a few words; empty where the status says it all."""
    if run.status == "diverged" and run.divergence is not None:
        where = "outside the layers" if run.divergence.layer is None else f"layer {run.divergence.layer}"
        return f"{run.divergence.kind} not finite at step {run.divergence.step:,}, {where}"
    if run.stuck:
        return STUCK
    return run.reason or ("" if run.status in ("succeeded", "queued", "running") else status_look(run.status).meaning)


def _columns(lines: Sequence[dict[str, Any]]) -> Sheet:
    return {name: [line[name] for line in lines] for name in (lines[0] if lines else ())}


def _keys(stability: Stability) -> list[tuple[int, str]]:
    pairs = {(row.depth, row.cell) for row in stability.rows}
    order = in_order({cell for _, cell in pairs})
    return sorted(pairs, key=lambda pair: (pair[0], order.index(pair[1])))


def _seeds(rows: Sequence[StabilityRow | None]) -> int:
    return max((row.n for row in rows if row is not None), default=0)


def _cell(row: StabilityRow | None, measure: Measure) -> str:
    if row is None or row.estimate is None:
        return NOTHING
    said = ratio if measure.unit == "ln" else number
    if row.low is None or row.high is None:
        return said(row.estimate)
    return f"{said(row.estimate)}  ({interval(said(row.low), said(row.high))})"


def _accuracy(row: AccuracyRow | None) -> str:
    if row is None or row.estimate is None:
        return NOTHING
    if row.low is None or row.high is None:
        return percent(row.estimate)
    return f"{percent(row.estimate)}  ({interval(f'{100 * row.low:.1f}', f'{100 * row.high:.1f}')})"


def _bounded(row: PairedRow, said: Callable[[float | None], str]) -> str:
    """A difference with its interval."""
    if row.low is None or row.high is None:
        return said(row.difference)
    return f"{said(row.difference)}  ({interval(said(row.low), said(row.high))})"


def _whole(row: PairedRow) -> bool:
    return row.low is not None and row.high is not None


def _verdict(row: PairedRow) -> str:
    if row.low is None or row.high is None:
        return "too few seeds"
    return "moves more" if row.low > 0 else "moves less" if row.high < 0 else "undecided"


def _flat(fields: dict[str, Any], before: str = "") -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    for name, value in fields.items():
        if isinstance(value, dict):
            lines += _flat(value, f"{before}{name}.")
        else:
            lines.append((f"{before}{name}".replace("_", " "), _shown(value)))
    return lines


def _shown(value: object) -> str:
    if value is None:
        return "as the task has it"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)
