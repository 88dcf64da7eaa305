"""What stands behind a comparison? Paces and costs of its groups, paired differences, results beside reported ones."""

from collections.abc import Mapping, Sequence

from client import AccuracyRow, Run, Stability, Task
from client.catalogue import PublishedFigure
from client.seeds import Difference, MetricGroup
from dashboard.palette import cell_title, in_order
from dashboard.sheets import Sheet
from dashboard.words import NOTHING, interval, number, percent

GroupKey = tuple[str, str, int]
MARKS = {"S": "sourced", "U": "unverified"}


def seconds_per_step(runs: Sequence[Run]) -> dict[GroupKey, float]:
    """By task, cell and depth: time from start to end over updates, of the runs that have ended."""
    seconds: dict[GroupKey, float] = {}
    steps: dict[GroupKey, int] = {}
    for run in runs:
        if run.started_at is not None and run.finished_at is not None and run.step:
            key = run.task, run.cell, run.depth
            seconds[key] = seconds.get(key, 0.0) + (run.finished_at - run.started_at).total_seconds()
            steps[key] = steps.get(key, 0) + run.step
    return {key: seconds[key] / steps[key] for key in seconds}


def tokens_per_step(pace: Sequence[MetricGroup], seconds: Mapping[GroupKey, float]) -> dict[GroupKey, float]:
    """By task, cell and depth: mean training pace in tokens per second times the time of an update."""
    found: dict[GroupKey, float] = {}
    for group in pace:
        key = group.task, group.cell, group.depth
        values = [value for value in group.mean if value == value]
        if values and key in seconds:
            found[key] = sum(values) / len(values) * seconds[key]
    return found


def costs(found: Stability, name: str) -> dict[GroupKey, float]:
    """By task, cell and depth: parameters, state_size or flops_per_token; the mean where networks differ in size."""
    sums: dict[GroupKey, list[int]] = {}
    for row in found.costs:
        sums.setdefault((row.task, row.cell, row.depth), []).append(getattr(row, name))
    return {key: sum(values) / len(values) for key, values in sums.items()}


def differences_sheet(rows: Sequence[Difference]) -> Sheet:
    """One line per cell and depth: the paired difference to the reference, its size and what decides it."""
    order = in_order({row.cell for row in rows})
    ordered = sorted(rows, key=lambda row: (order.index(row.cell), row.depth))
    return {
        "Cell": [[row.cell] for row in ordered],
        "Depth": [row.depth for row in ordered],
        "Difference": [number(row.estimate) for row in ordered],
        "95% interval": [
            interval(number(row.low), number(row.high)) if row.low is not None and row.high is not None else NOTHING
            for row in ordered
        ],
        "Effect size": [number(row.effect_size) for row in ordered],
        "p (Holm)": [number(row.p_holm) for row in ordered],
        "Seeds": [row.n for row in ordered],
    }


def beside_reported(task: Task, rows: Sequence[AccuracyRow]) -> Sheet:
    """Results here and reported ones, each in a column of its own; of a task that is no stand-in.

    Raises:
        ValueError: The task is a stand-in, whose numbers never stand beside published ones.
    """
    if task.stand_in:
        raise ValueError(f"{task.name} is a stand-in")
    own = [row for row in rows if row.task == task.name and row.estimate is not None]
    order = in_order({row.cell for row in own})
    own.sort(key=lambda row: (order.index(row.cell), row.depth))
    reported = sorted(task.published, key=lambda one: -(one.accuracy or 0.0))
    blank = [""] * len(own)
    return {
        "Model": [*(f"{cell_title(row.cell)}, depth {row.depth}" for row in own), *(one.model for one in reported)],
        "Here": [*(_ours(row) for row in own), *([""] * len(reported))],
        "Reported": [
            *blank,
            *(_reported(one) for one in reported),
        ],
        "Mark": [*blank, *(MARKS.get(one.mark, one.mark) for one in reported)],
        "Source": [*blank, *(one.source for one in reported)],
        "Note": [*blank, *(one.note for one in reported)],
    }


def stand_in_sheet(rows: Sequence[AccuracyRow]) -> Sheet:
    """Results of a stand-in, by themselves."""
    order = in_order({row.cell for row in rows})
    own = sorted((row for row in rows if row.estimate is not None), key=lambda row: (order.index(row.cell), row.depth))
    return {
        "Model": [f"{cell_title(row.cell)}, depth {row.depth}" for row in own],
        "Here": [_ours(row) for row in own],
    }


def _reported(one: PublishedFigure) -> str:
    if one.accuracy is None:
        return "training fails"
    return f"{100 * one.accuracy:.4g} %" + (f" ({100 * one.standard_error:.1f})" if one.standard_error else "")


def _ours(row: AccuracyRow) -> str:
    if row.low is None or row.high is None:
        return f"{percent(row.estimate)} (n = {row.n})"
    return f"{percent(row.estimate)} ({interval(f'{100 * row.low:.1f}', f'{100 * row.high:.1f}')}, n = {row.n})"
