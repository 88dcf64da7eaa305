"""Which runs belong together? Those of one task, cell and depth, split further by any field of the configuration."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Any

import rfc8785
from fastapi import Query
from pydantic import StringConstraints

from api.expansion import leaves
from api.problems import Refusal
from store.tables import RunRow

GroupBy = Annotated[
    list[Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$", max_length=100)]],
    Query(
        default_factory=list,
        max_length=10,
        description="Fields such as training.learning_rate that split the groups further, beside task, cell and depth.",
    ),
]


@dataclass(frozen=True)
class Group:
    """Runs that differ in nothing that was asked for; fields holds each value as canonical JSON (RFC 8785)."""

    task: str
    cell: str
    depth: int
    fields: dict[str, str]
    runs: list[RunRow]


def grouped(runs: Iterable[RunRow], fields: Sequence[str] = ()) -> list[Group]:
    """The groups in order of task, cell, depth and the fields' texts; inside each by seed and id.

    Raises:
        Refusal: 422, a field that no run has.
    """
    keyed = [(_key(run, fields), run) for run in runs]
    for place, field in enumerate(fields):
        if keyed and all(key[3][place] is None for key, _ in keyed):
            raise Refusal(
                422,
                "unknown-field",
                f"No run has the field {field}.",
                field="group_by",
                value=field,
                remedy="GET /v1/runs shows each run's configuration with its fields",
            )
    keyed.sort(key=lambda each: (_order(each[0]), each[1].seed, str(each[1].id)))
    return [
        Group(key[0], key[1], key[2], dict(zip(fields, _order(key)[3], strict=True)), [run for _, run in members])
        for key, members in groupby(keyed, key=lambda each: each[0])
    ]


def canonical(value: Any) -> str:
    """A value of a configuration as canonical JSON: each number has one text."""
    return rfc8785.dumps(value).decode()


def _key(run: RunRow, fields: Sequence[str]) -> tuple[str, str, int, tuple[str | None, ...]]:
    if not fields:
        return run.task, run.cell, run.depth, ()
    flat = dict(leaves(run.config))
    return run.task, run.cell, run.depth, tuple(canonical(flat[f]) if f in flat else None for f in fields)


def _order(key: tuple[str, str, int, tuple[str | None, ...]]) -> tuple[str, str, int, tuple[str, ...]]:
    return (*key[:3], tuple(text if text is not None else "absent" for text in key[3]))
