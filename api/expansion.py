"""Which runs does an order mean? One checked run from a configuration, or every combination of a grid over a base."""

import dataclasses
import functools
import hashlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import rfc8785

from api.matching import cell_fields, fitted
from rotrnn_core.config import ConfigError, RunConfig
from rotrnn_core.cost import Match
from rotrnn_core.version import code_version
from store.runs import NewRun

MOST_RUNS = 10_000
_MOST_SAID = 10**40
_MOST_EXACT = 2**53 - 1
_PARTS = sorted(field.name for field in dataclasses.fields(RunConfig))


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
    return _run({part: _read(part, given) for part, given in config.items()}, name)


def expand(
    config: Mapping[str, Any], grid: Mapping[str, Sequence[Any]], name: str | None = None, match: Match = "d_state"
) -> Expansion:
    """Every run of a grid, checked; cells that mean the same configuration are one run.

    Each part of a configuration (task, model ..) is read once for all cells that share it.

    Args:
        config: What all runs share; a field that the grid sets is dropped from it.
        grid: Dotted field to its values.
        name: Name of each run.
        match: What all cells shall have in common with the grid's first cell; where it is not d_state, each gets the
            d_state that brings it nearest.

    Raises:
        ConfigError: The grid is empty somewhere, has more than MOST_RUNS cells, sets a field twice, has no cells to
            match, or a run in it cannot be run.
    """
    _check_size(grid)
    _check_overlap(grid)
    varied = cell_fields(grid, match)
    base: Mapping[str, Any] = config
    for field in grid:
        base = _without(base, field.split("."))
    fields = list(grid)
    places: dict[str, list[int]] = {part: [] for part in base}
    for place, field in enumerate(fields):
        places.setdefault(field.partition(".")[0], []).append(place)
    known: dict[tuple[str, tuple[int, ...], int], Part] = {}
    distinct: dict[str, NewRun] = {}
    cells = 0

    def given(part: str, chosen: Sequence[int]) -> Any:
        cell: Mapping[str, Any] = {part: base[part]} if part in base else {}
        for place in places[part]:
            cell = _placed(cell, fields[place], grid[fields[place]][chosen[place]])
        return cell[part]

    for choice in itertools.product(*(range(len(values)) for values in grid.values())):
        parts: dict[str, Part] = {}
        # The task comes before the model, whose size may depend on it.
        for part, own in sorted(places.items(), reverse=True):
            time = parts.get("task", _default("task")).config.info.longest if part == "model" and varied else 0
            key = part, tuple(choice[place] for place in own), time
            if key not in known:
                wanted = given(part, choice)
                if time:
                    first = [0 if fields[place] in varied else chosen for place, chosen in enumerate(choice)]
                    wanted = fitted(wanted, given(part, first), match, time)
                known[key] = _read(part, wanted)
            parts[part] = known[key]
        run = _run(parts, name)
        distinct.setdefault(run.config_hash, run)
        cells += 1
    return Expansion(dict(base), list(distinct.values()), cells - len(distinct))


def expand_all(
    config: Mapping[str, Any],
    grid: Mapping[str, Sequence[Any]],
    combinations: Sequence[Mapping[str, Any]],
    name: str | None = None,
    match: Match = "d_state",
) -> Expansion:
    """The grid over the base with each combination's fields in turn; without combinations the grid alone.

    Raises:
        ConfigError: As `expand`; or a combination sets a field of the grid, or cells are to be matched.
    """
    if not combinations:
        return expand(config, grid, name, match)
    if match != "d_state":
        raise ConfigError("match", match, "what combinations have in common is yours to set; use d_state")
    cells = len(combinations) * math.prod(len(values) for values in grid.values())
    if cells > MOST_RUNS:
        raise ConfigError("combinations", f"{cells} runs", f"a sweep has at most {MOST_RUNS} runs; shorten the lists")
    distinct: dict[str, NewRun] = {}
    for place, combination in enumerate(combinations):
        if twice := sorted(set(combination) & set(grid)):
            raise ConfigError(f"combinations.{place}", twice[0], "the grid sets this field too; drop one")
        found = expand(config, {field: [value] for field, value in combination.items()} | dict(grid), name)
        for run in found.runs:
            distinct.setdefault(run.config_hash, run)
    return Expansion(dict(config), list(distinct.values()), cells - len(distinct))


@dataclass(frozen=True)
class Part:
    """One part of a configuration: checked, complete as plain values, and as canonical JSON."""

    config: Any
    complete: dict[str, Any]
    canonical: str


def _read(part: str, given: object) -> Part:
    config = RunConfig.part_from_dict(part, given)
    complete = _plain(config)
    return Part(config, complete, _canonical(complete, part))


@functools.cache
def _default(part: str) -> Part:
    return _read(part, {})


def _run(given: Mapping[str, Part], name: str | None) -> NewRun:
    parts = {part: given.get(part) or _default(part) for part in _PARTS}
    run = RunConfig(**{name: part.config for name, part in parts.items()})
    canonical = ",".join(f'"{name}":{parts[name].canonical}' for name in _PARTS)
    return NewRun(
        config={name: part.complete for name, part in parts.items()},
        config_hash=hashlib.sha256(f"{{{canonical}}}".encode()).hexdigest(),
        cell=run.model.cell.label,
        task=run.task.name,
        depth=run.model.n_layers,
        seed=run.training.seed,
        total_steps=run.training.steps,
        name=name,
        code_version=code_version(),
        needs_data=run.task.needs_data,
    )


def _plain(config: Any) -> dict[str, Any]:
    """The fields of a configuration class as nested plain values, which nobody changes."""
    values = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    return {name: _plain(value) if dataclasses.is_dataclass(value) else value for name, value in values.items()}


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


def _canonical(config: Mapping[str, Any], path: str) -> str:
    """Canonical JSON (RFC 8785) of nested plain values whose names are ASCII."""
    members = []
    for name in sorted(config):
        value = config[name]
        where = f"{path}.{name}"
        try:
            text = _canonical(value, where) if isinstance(value, Mapping) else _scalar(type(value).__name__, value)
        except rfc8785.IntegerDomainError:
            remedy = f"use at most {_MOST_EXACT}, which every JSON reader keeps exact"
            raise ConfigError(where, value, remedy) from None
        members.append(f'"{name}":{text}')
    return "{" + ",".join(members) + "}"


@functools.lru_cache(maxsize=2**14)
def _scalar(kind: str, value: Any) -> str:
    return rfc8785.dumps(value).decode()


def leaves(config: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Each plain value of a nested configuration with its dotted field."""
    for name, value in config.items():
        where = f"{path}.{name}" if path else name
        if isinstance(value, Mapping):
            yield from leaves(value, where)
        else:
            yield where, value
