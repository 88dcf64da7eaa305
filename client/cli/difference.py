"""In what do two runs differ? `rotbench diff`: their configurations, environments and results, side by side."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import typer

from client.api import RotBench
from client.cli.asking import bench, find_run
from client.cli.output import Column, JsonOption, json_out, say, table
from client.cli.showing import IdArgument
from client.results import Run
from client.wire import plain

ABSENT = "absent"
RESULTS = ("status", "failure_class", "step", "total_steps", "attempt", "parameter_count", "device", "divergence")


@dataclass(frozen=True)
class Difference:
    """A field whose values are not equal; where is config, environment or result."""

    where: str
    field: str
    first: Any
    second: Any


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("diff")(diff)


def diff(context: typer.Context, first: IdArgument, second: IdArgument, as_json: JsonOption = False) -> None:
    """Show in which fields two runs differ: of their configurations, environments and results."""
    client = bench(context)
    found = tuple(differences(client, find_run(client, first), find_run(client, second)))
    if as_json:
        json_out({"items": found})
        return
    if not found:
        say("The runs are equal in configuration, environment and result.")
        return
    columns = [Column("WHERE"), Column("FIELD"), Column("FIRST"), Column("SECOND")]
    table(columns, [(one.where, one.field, str(one.first), str(one.second)) for one in found])


def differences(client: RotBench, first: Run, second: Run) -> Iterator[Difference]:
    """Every field that is not equal, in the order of configuration, environment, result."""
    parts = (
        ("config", leaves(first.config), leaves(second.config)),
        ("environment", _environment(client, first), _environment(client, second)),
        ("result", _results(first), _results(second)),
    )
    for where, one, other in parts:
        for field in [*one, *(name for name in other if name not in one)]:
            values = one.get(field, ABSENT), other.get(field, ABSENT)
            if values[0] != values[1]:
                yield Difference(where, field, *values)


def leaves(config: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Each plain value of a nested configuration under its dotted field."""
    found: dict[str, Any] = {}
    for name, value in config.items():
        where = f"{path}.{name}" if path else name
        found |= leaves(value, where) if isinstance(value, Mapping) else {where: value}
    return found


def _environment(client: RotBench, run: Run) -> dict[str, Any]:
    attempts = client.attempts(run.id)
    if not attempts:
        return {}
    last = attempts[-1]
    return {"worker": last.worker_id, "host": last.host, **(last.environment or {})}


def _results(run: Run) -> dict[str, Any]:
    return {name: plain(getattr(run, name)) for name in RESULTS} | {key: plain(v) for key, v in run.latest.items()}
