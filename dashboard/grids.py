"""How does a sweep lie on a plane? Its runs as a matrix of cells, and what they cost so far and still."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from client import Run
from dashboard.palette import cell_title
from dashboard.words import DOT

SEED = "training.seed"
_WORDS = {"model.n_layers": "depth", "training.seed": "seed", "task.name": "task"}


@dataclass(frozen=True)
class Matrix:
    """Runs in rows and columns: labels of both, and the run at each place that has one."""

    across: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    runs: Mapping[tuple[int, int], Run]


@dataclass(frozen=True)
class Cost:
    """Device time in seconds: spent, and left by the pace of equal runs; None where no run has a pace yet."""

    spent_s: float
    left_s: float | None
    lanes: int

    @property
    def wall_left_s(self) -> float | None:
        """Time until the end if as many runs train at once as now."""
        return None if self.left_s is None else self.left_s / max(1, self.lanes)


def matrix(runs: Sequence[Run], grid: Mapping[str, Any], across: str) -> Matrix:
    """The runs with one field of the grid across and all combinations of the others down.

    Args:
        runs: In the order of the grid.
        grid: Dotted field to its values.
        across: The field whose values are the columns; a field that the grid lacks gives one column.
    """
    down = [field for field in grid if field != across]
    row_of, column_of = _Labels(down), _Labels([across] if across in grid else [])
    places = {(row_of.place(run), column_of.place(run)): run for run in runs}
    return Matrix(name_of(across), row_of.texts(), column_of.texts(), places)


def cost(runs: Sequence[Run], now: datetime) -> Cost:
    """What the runs have cost and will: steps left times the seconds per step of runs of the same task, cell and depth.

    Runs of a kind without a pace take the mean pace of all.
    """
    spent = {run.id: _seconds(run, now) for run in runs}
    pace = _pace(runs, spent, lambda run: (run.task, run.cell, run.depth))
    overall = _pace(runs, spent, lambda run: ()).get(())
    left, known = 0.0, True
    for run in runs:
        if run.active:
            each = pace.get((run.task, run.cell, run.depth), overall)
            known = known and each is not None
            left += (run.total_steps - run.step) * (each or 0.0)
    lanes = sum(run.status == "running" for run in runs)
    return Cost(sum(spent.values()), left if known else None, lanes)


def name_of(field: str) -> str:
    """A dotted field as people say it."""
    return _WORDS.get(field) or field.rsplit(".", 1)[-1].replace("_", " ")


def value_of(run: Run, field: str) -> Any:
    """What a run's configuration has at a dotted field; None where it has no such field."""
    value: Any = run.config
    for name in field.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


class _Labels:
    """The distinct values of some fields, in the order in which runs have them, each with a text that no other has."""

    def __init__(self, fields: Sequence[str]) -> None:
        self._fields = fields
        self._first: dict[str, Run] = {}

    def place(self, run: Run) -> int:
        """The number of a run's values among those seen."""
        key = json.dumps([value_of(run, field) for field in self._fields], sort_keys=True)
        self._first.setdefault(key, run)
        return list(self._first).index(key)

    def texts(self) -> tuple[str, ...]:
        """One text for each."""
        short = [_said(run, self._fields, full=False) for run in self._first.values()]
        return tuple(
            text if short.count(text) == 1 else _said(run, self._fields, full=True)
            for run, text in zip(self._first.values(), short, strict=True)
        )


def _said(run: Run, fields: Sequence[str], *, full: bool) -> str:
    parts = []
    for field in fields:
        value = value_of(run, field)
        if field == "model.cell":
            options = ", ".join(f"{k} {v}" for k, v in value.items() if k != "name") if full else ""
            parts.append(cell_title(run.cell) + (f" ({options})" if options else ""))
        else:
            parts.append(f"{name_of(field)} {value}")
    return f" {DOT} ".join(parts) or "all"


def _seconds(run: Run, now: datetime) -> float:
    if run.started_at is None:
        return 0.0
    return max(0.0, ((run.finished_at or now) - run.started_at).total_seconds())


def _pace(runs: Sequence[Run], spent: Mapping[str, float], kind: Callable[[Run], Any]) -> dict[Any, float]:
    seconds: dict[Any, float] = {}
    steps: dict[Any, int] = {}
    for run in runs:
        if run.step and spent[run.id] and run.status not in ("paused", "queued"):
            seconds[kind(run)] = seconds.get(kind(run), 0.0) + spent[run.id]
            steps[kind(run)] = steps.get(kind(run), 0) + run.step
    return {one: seconds[one] / steps[one] for one in seconds}
