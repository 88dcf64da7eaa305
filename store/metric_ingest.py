"""How do points get in? Straight into their table where all are new, else by way of a table that sorts out the known.

A batch goes as binary COPY made of whole arrays: every bit of every float is kept, and nothing is done per point.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import text
from sqlalchemy.orm import Session

from store import metric_blocks
from store.copying import copy_binary, copy_rows
from store.metric_blocks import Block
from store.plain_text import storable
from store.tables import RunRow

_COLUMNS = ("run_id", "key", "step", "attempt", "value")
_LAST_STEP = 2**31 - 1
_INCOMING = {"key": "text", "step": "int4", "value": "float8"}


@dataclass(frozen=True)
class _Points:
    steps: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


def append(session: Session, run: RunRow, points: Iterable[tuple[str, int, float]]) -> None:
    """Store the points that the run's present attempt has not stored before; the caller holds the run's lock."""
    given: dict[str, _Points] = defaultdict(_Points)
    for name, step, value in points:
        of_key = given[name]
        of_key.steps.append(step)
        of_key.values.append(value)
    found: dict[str, _Points] = {}
    for name, of_key in given.items():
        same = found.setdefault(storable(name), of_key)
        if same is not of_key:
            same.steps.extend(of_key.steps)
            same.values.extend(of_key.values)
    steps = {key: np.array(of_key.steps, dtype=np.int64) for key, of_key in found.items()}
    if any(some.max() > _LAST_STEP for some in steps.values()):
        raise ValueError(f"a step is larger than {_LAST_STEP}, the last one that can be kept")
    size = metric_blocks.block_of(run.total_steps)
    last = metric_blocks.last_ones(session, run, list(steps))
    if all(_all_later(some, last.get(key)) for key, some in steps.items()):
        values = {key: np.array(of_key.values, dtype=np.float64) for key, of_key in found.items()}
        rows = (_rows(run.id, run.attempt, key, steps[key], values[key]) for key in found)
        copy_binary(session, "metrics", _COLUMNS, rows)
        summed = {key: metric_blocks.summed(steps[key], values[key], size) for key in found}
        metric_blocks.add(session, run, summed, last)
    else:
        _merge(session, run, found)
        touched = {key: np.unique(some // size).tolist() for key, some in steps.items()}
        metric_blocks.sum_again(session, run, touched)


def _all_later(steps: NDArray[np.int64], last: Block | None) -> bool:
    """Whether the steps ascend, and begin behind the last one stored."""
    return (last is None or steps[0] > last.last_step) and bool((np.diff(steps) > 0).all())


def _rows(run_id: UUID, attempt: int, key: str, steps: NDArray[np.int64], values: NDArray[np.float64]) -> bytes:
    """The points of one key as rows of a binary COPY: each field after its length, big-endian."""
    name = key.encode()
    parts = [("run_id", "V16"), ("key", f"V{len(name)}"), ("step", ">i4"), ("attempt", ">i4"), ("value", ">f8")]
    layout = [("fields", ">i2")]
    for part, kind in parts:
        layout += [(f"{part}_size", ">i4"), (part, kind)]
    made = np.zeros(steps.size, dtype=layout)
    made["fields"] = len(parts)
    for part, kind in parts:
        made[f"{part}_size"] = np.dtype(kind).itemsize
    made["run_id"], made["key"] = np.void(run_id.bytes), np.void(name)
    made["step"], made["attempt"], made["value"] = steps, attempt, values
    return made.tobytes()


def _merge(session: Session, run: RunRow, found: Mapping[str, _Points]) -> None:
    connection = session.connection()
    typed = ", ".join(f"{name} {kind}" for name, kind in _INCOMING.items())
    connection.execute(text(f"CREATE TEMPORARY TABLE IF NOT EXISTS incoming_metrics ({typed}) ON COMMIT DELETE ROWS"))
    copy_rows(session, "incoming_metrics", _INCOMING, _flat(found))
    connection.execute(
        text(
            "INSERT INTO metrics (run_id, attempt, key, step, value) SELECT :run_id, :attempt, key, step, value "
            "FROM incoming_metrics ON CONFLICT DO NOTHING"
        ),
        {"run_id": run.id, "attempt": run.attempt},
    )
    connection.execute(text("TRUNCATE incoming_metrics"))


def _flat(found: Mapping[str, _Points]) -> Iterator[tuple[str, int, float]]:
    for key, of_key in found.items():
        for step, value in zip(of_key.steps, of_key.values, strict=True):
            yield key, step, value
