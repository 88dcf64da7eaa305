"""Which runs does an order mean? One checked run from a configuration, or every combination of a grid over a base."""

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import rfc8785

from rotrnn_core.config import ConfigError, RunConfig
from store.runs import NewRun

MOST_RUNS = 10_000
_MOST_SAID = 10**40
_MOST_EXACT = 2**53 - 1


@dataclass(frozen=True)
class Expansion:
    """The distinct runs of a grid in its order (the last field turns fastest); merged counts the cells left out."""

    base: dict[str, Any]
    runs: list[NewRun]
    merged: int


def checked(config: Mapping[str, Any], name: str | None = None) -> NewRun:
    """The complete run that a configuration means.

    Raises:
        ConfigError: It cannot be run.
    """
    run = RunConfig.from_dict(config)
    complete = run.to_dict()
    return NewRun(
        config=complete,
        config_hash=_hash(complete),
        cell=run.model.cell.label,
        task=run.task.name,
        depth=run.model.n_layers,
        seed=run.training.seed,
        total_steps=run.training.steps,
        name=name,
    )


def expand(config: Mapping[str, Any], grid: Mapping[str, Sequence[Any]], name: str | None = None) -> Expansion:
    """Every run of a grid, checked; cells that mean the same configuration are one run.

    Args:
        config: What all runs share; a field that the grid sets is dropped from it.
        grid: Dotted field to its values.
        name: Name of each run.

    Raises:
        ConfigError: The grid is empty somewhere, has more than MOST_RUNS cells, sets a field twice, or a run in it
            cannot be run.
    """
    _check_size(grid)
    _check_overlap(grid)
    base: Mapping[str, Any] = config
    for field in grid:
        base = _without(base, field.split("."))
    distinct: dict[str, NewRun] = {}
    cells = 0
    for values in itertools.product(*grid.values()):
        cell = base
        for field, value in zip(grid, values, strict=True):
            cell = _placed(cell, field, value)
        run = checked(cell, name)
        distinct.setdefault(run.config_hash, run)
        cells += 1
    return Expansion(dict(base), list(distinct.values()), cells - len(distinct))


def _check_size(grid: Mapping[str, Sequence[Any]]) -> None:
    total = 1
    for field, values in grid.items():
        if not values:
            raise ConfigError(f"grid.{field}", [], "give at least one value, or leave the field out")
        total = min(total * len(values), _MOST_SAID)
    if total > MOST_RUNS:
        said = f"{total} runs" if total < _MOST_SAID else "more than 10^40 runs"
        remedy = f"a sweep has at most {MOST_RUNS} runs; shorten the lists or split it into several sweeps"
        raise ConfigError("grid", said, remedy)


def _check_overlap(grid: Mapping[str, Sequence[Any]]) -> None:
    for field in grid:
        parts = field.split(".")
        for end in range(1, len(parts)):
            whole = ".".join(parts[:end])
            if whole in grid:
                raise ConfigError(
                    f"grid.{field}", list(grid[field]), f"{whole} is set whole by the same grid; drop one"
                )


def _without(config: Mapping[str, Any], path: Sequence[str]) -> Mapping[str, Any]:
    levels: list[dict[str, Any]] = [dict(config)]
    for part in path[:-1]:
        inner = levels[-1].get(part)
        if not isinstance(inner, Mapping):
            return levels[0]
        levels[-1][part] = dict(inner)
        levels.append(levels[-1][part])
    levels[-1].pop(path[-1], None)
    return levels[0]


def _placed(config: Mapping[str, Any], field: str, value: object) -> Mapping[str, Any]:
    *path, last = field.split(".")
    outer = dict(config)
    level = outer
    for depth, part in enumerate(path, start=1):
        where = ".".join(path[:depth])
        inner = level.get(part, {})
        if where == "model.cell" and isinstance(inner, str):
            inner = {"name": inner}
        if not isinstance(inner, Mapping):
            raise ConfigError(where, inner, f"use an object of named fields, since the grid sets {field}")
        level[part] = dict(inner)
        level = level[part]
    level[last] = value
    return outer


def _hash(config: Mapping[str, Any]) -> str:
    try:
        return hashlib.sha256(rfc8785.dumps(dict(config))).hexdigest()
    except rfc8785.IntegerDomainError:
        field, value = next((f, v) for f, v in leaves(config) if isinstance(v, int) and abs(v) > _MOST_EXACT)
        raise ConfigError(field, value, f"use at most {_MOST_EXACT}, which every JSON reader keeps exact") from None


def leaves(config: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Each plain value of a nested configuration with its dotted field."""
    for name, value in config.items():
        where = f"{path}.{name}" if path else name
        if isinstance(value, Mapping):
            yield from leaves(value, where)
        else:
            yield where, value
