"""What do the points of each block of steps come to? Summed up as they come in, so that a chart need not read them.

A run is cut into one to two thousand blocks; each attempt has its own. Points that are all later than what is stored
are added to the last block's row here; any other are summed up by the database from what it holds.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import text
from sqlalchemy.orm import Session

from store.copying import copy_rows
from store.tables import MetricBlockRow, RunRow

_LEAST_BLOCK = 4
_FEWEST_BLOCKS = 1024
_COLUMNS = {"run_id": "uuid", "attempt": "int4", "key": "text"} | {
    name: "float8" if name in ("first", "last", "minimum", "maximum") else "int4"
    for name in ("block", "first_step", "last_step", "first", "last", "minimum", "maximum", "points", "non_finite")
}


class Block(NamedTuple):
    """The points of one block; minimum and maximum are over finite values, None without any."""

    block: int
    first_step: int
    last_step: int
    first: float
    last: float
    minimum: float | None
    maximum: float | None
    points: int
    non_finite: int

    def plus(self, later: "Block") -> "Block":
        """Both together, where the other holds later points of the same block."""
        return Block(
            self.block,
            self.first_step,
            later.last_step,
            self.first,
            later.last,
            min((x for x in (self.minimum, later.minimum) if x is not None), default=None),
            max((x for x in (self.maximum, later.maximum) if x is not None), default=None),
            self.points + later.points,
            self.non_finite + later.non_finite,
        )


_REPLACE = "ON CONFLICT ON CONSTRAINT pk_metric_blocks DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in Block._fields[1:]
)

_LAST = text(
    f"SELECT asked.key, newest.* FROM unnest(CAST(:keys AS text[])) AS asked (key), LATERAL (SELECT "
    f"{', '.join(Block._fields)} FROM metric_blocks WHERE run_id = :run_id AND key = asked.key AND attempt = :attempt "
    "ORDER BY block DESC LIMIT 1) AS newest"
)


def block_of(total_steps: int) -> int:
    """Steps of each block of a run: a power of 2, so that a longer run's block is a multiple of a shorter one's."""
    return max(_LEAST_BLOCK, 1 << (total_steps // _FEWEST_BLOCKS).bit_length() >> 1)


def last_ones(session: Session, run: RunRow, keys: Sequence[str]) -> dict[str, Block]:
    """The last block that the run's present attempt has of each key, for those that have one."""
    found = session.connection().execute(_LAST, {"run_id": run.id, "attempt": run.attempt, "keys": list(keys)})
    return {key: Block(*block) for key, *block in found}


def add(session: Session, run: RunRow, found: Mapping[str, Iterable[Block]], last: Mapping[str, Block]) -> None:
    """Store the blocks of points that are all later than those of `last_ones`; the caller holds the run's lock."""
    fresh: list[tuple[str, Block]] = []
    grown: list[tuple[str, Block]] = []
    for key, blocks in found.items():
        before = last.get(key)
        for block in blocks:
            if before is not None and before.block == block.block:
                grown.append((key, before.plus(block)))
            else:
                fresh.append((key, block))
    if fresh:
        rows = ((run.id, run.attempt, key, *block) for key, block in fresh)
        copy_rows(session, MetricBlockRow.__tablename__, _COLUMNS, rows)
    if grown:
        _replace(session, run, grown)


def _replace(session: Session, run: RunRow, grown: Sequence[tuple[str, Block]]) -> None:
    typed = ", ".join(f"CAST(:{name} AS {_COLUMNS[name]}[])" for name in ("key", *Block._fields))
    session.connection().execute(
        text(
            f"INSERT INTO metric_blocks (run_id, attempt, key, {', '.join(Block._fields)}) "
            f"SELECT :run_id, :attempt, grown.* FROM unnest({typed}) AS grown {_REPLACE}"
        ),
        {
            "run_id": run.id,
            "attempt": run.attempt,
            "key": [key for key, _ in grown],
            **{name: [getattr(block, name) for _, block in grown] for name in Block._fields},
        },
    )


def summed(steps: NDArray[np.int64], values: NDArray[np.float64], size: int) -> list[Block]:
    """The blocks of ascending steps, each of `size` steps."""
    block = steps // size
    starts = np.flatnonzero(np.diff(block, prepend=block[0] - 1))
    ends = np.append(starts[1:], steps.size)
    finite = np.isfinite(values)
    shown = np.where(finite, values, np.nan)
    columns = (
        *(block[starts], steps[starts], steps[ends - 1], values[starts], values[ends - 1]),
        *(np.fmin.reduceat(shown, starts), np.fmax.reduceat(shown, starts)),
        *(ends - starts, np.add.reduceat((~finite).astype(np.int64), starts)),
    )
    whole = bool(finite.all())
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Block(*row) if whole else _with_gaps(Block(*row)) for row in rows]


def sum_again(session: Session, run: RunRow, touched: Mapping[str, Sequence[int]]) -> None:
    """Sum up the blocks of each key again from the points that are stored for the run's present attempt.

    The caller holds the run's lock.
    """
    size = block_of(run.total_steps)
    of_block = (
        "SELECT min(step), max(step), (min(ARRAY[step, value]))[2], (max(ARRAY[step, value]))[2], "
        "min(value) FILTER (WHERE value - value = 0), max(value) FILTER (WHERE value - value = 0), "
        "count(*), count(*) FILTER (WHERE value - value <> 0) FROM metrics WHERE run_id = :run_id "
        f"AND key = touched.key AND step BETWEEN block * {size} AND block * {size} + {size - 1} "
        "AND attempt = :attempt OFFSET 0"
    )
    session.connection().execute(
        text(
            f"INSERT INTO metric_blocks (run_id, key, attempt, {', '.join(Block._fields)}) "
            "SELECT :run_id, key, :attempt, block, summed.* "
            "FROM unnest(CAST(:keys AS text[]), CAST(:blocks AS int[])) AS touched (key, block), "
            f"LATERAL ({of_block}) AS summed {_REPLACE}"
        ),
        {
            "run_id": run.id,
            "attempt": run.attempt,
            "keys": [key for key, blocks in touched.items() for _ in blocks],
            "blocks": [block for blocks in touched.values() for block in blocks],
        },
    )


def _with_gaps(block: Block) -> Block:
    """The block, where no finite value is NaN so far."""
    none = block.points == block.non_finite
    return block._replace(minimum=None, maximum=None) if none else block
