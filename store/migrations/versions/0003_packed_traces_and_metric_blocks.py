"""How do hidden norms become compact and charts quick? Rows are packed to the last bit, and points summed up."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

import numpy as np
import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from store.metric_blocks import block_of
from store.traces import COLUMNS, Stretch, rows

revision = "0003"
down_revision = "0002"

_LONG = 512


def upgrade() -> None:
    connection = op.get_bind()
    op.add_column(
        "sweeps",
        sa.Column("combinations", postgresql.JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False),
    )
    op.execute("CREATE TEMPORARY TABLE old_hidden_norms AS TABLE hidden_norms")
    op.execute("CREATE INDEX ON old_hidden_norms (run_id, attempt, step)")
    op.drop_table("hidden_norms")
    op.create_table(
        "hidden_norms",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("statistic", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("first_step", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("last_step", sa.Integer(), nullable=False),
        sa.Column("steps", sa.ARRAY(sa.Integer()), nullable=False),
        sa.Column("layers", sa.Integer(), nullable=False),
        sa.Column("unit", sa.ARRAY(sa.Double()), nullable=True),
        sa.Column("mean", sa.LargeBinary(), nullable=False),
        sa.Column("deviation", sa.LargeBinary(), nullable=False),
        sa.Column("minimum", sa.LargeBinary(), nullable=False),
        sa.Column("maximum", sa.LargeBinary(), nullable=False),
        sa.Column("non_finite", sa.LargeBinary(), nullable=False),
        sa.Column("profile_steps", sa.ARRAY(sa.Integer()), nullable=False),
        sa.Column("profile", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "statistic", "attempt", "first_step", name=op.f("pk_hidden_norms")),
    )
    attempts = connection.execute(sa.text("SELECT DISTINCT run_id, attempt FROM old_hidden_norms")).all()
    names = ("run_id", "attempt", *COLUMNS)
    insert = sa.text(f"INSERT INTO hidden_norms ({', '.join(names)}) VALUES ({', '.join(f':{n}' for n in names)})")
    for run_id, attempt in attempts:
        for piece in _pieces(connection, run_id, attempt):
            for row in rows(piece):
                connection.execute(insert, dict(zip(names, (run_id, attempt, *row), strict=True)))
    op.drop_table("old_hidden_norms")
    op.create_table(
        "metric_blocks",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("block", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("first_step", sa.Integer(), nullable=False),
        sa.Column("last_step", sa.Integer(), nullable=False),
        sa.Column("first", sa.Double(), nullable=False),
        sa.Column("last", sa.Double(), nullable=False),
        sa.Column("minimum", sa.Double(), nullable=True),
        sa.Column("maximum", sa.Double(), nullable=True),
        sa.Column("points", sa.Integer(), nullable=False),
        sa.Column("non_finite", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "key", "attempt", "block", name=op.f("pk_metric_blocks")),
    )
    sum_up = sa.text(
        "INSERT INTO metric_blocks SELECT run_id, key, attempt, step / :size, min(step), max(step), "
        "(min(ARRAY[step, value]))[2], (max(ARRAY[step, value]))[2], min(value) FILTER (WHERE value - value = 0), "
        "max(value) FILTER (WHERE value - value = 0), count(*), count(*) FILTER (WHERE value - value <> 0) "
        "FROM metrics WHERE run_id = :run_id GROUP BY run_id, key, attempt, step / :size"
    )
    for run_id, total_steps in connection.execute(sa.text("SELECT id, total_steps FROM runs WHERE attempt > 0")).all():
        connection.execute(sum_up, {"run_id": run_id, "size": block_of(total_steps)})


def _pieces(connection: sa.Connection, run_id: Any, attempt: int) -> Iterator[Mapping[str, Stretch]]:
    """The old rows of an attempt in pieces of so many steps."""
    wanted = sa.text(
        "SELECT statistic, step, mean, deviation, minimum, maximum, non_finite, profile::float8[] AS profile "
        "FROM old_hidden_norms WHERE run_id = :run_id AND attempt = :attempt AND step = ANY(:steps) "
        "ORDER BY statistic, step"
    )
    every = sa.text(
        "SELECT DISTINCT step FROM old_hidden_norms WHERE run_id = :run_id AND attempt = :attempt ORDER BY step"
    )
    which = {"run_id": run_id, "attempt": attempt}
    steps = list(connection.scalars(every, which))
    for place in range(0, len(steps), _LONG):
        found = connection.execute(wanted, which | {"steps": steps[place : place + _LONG]}).all()
        yield {name: _stretch(list(group)) for name, group in groupby(found, lambda row: row.statistic)}


def _stretch(old: list[Any]) -> Stretch:
    steps = np.array([row.step for row in old], dtype=np.int32)
    layers = len(old[0].mean)
    profile = np.array([row.profile for row in old], dtype=np.float32)
    return Stretch(
        steps=steps,
        **{
            name: np.array([getattr(row, name) for row in old], dtype=np.float64)
            for name in ("mean", "deviation", "minimum", "maximum")
        },
        non_finite=np.array([row.non_finite for row in old], dtype=np.int32),
        profile_steps=steps,
        profile=profile.reshape(len(old), layers, profile.shape[1] // max(layers, 1)),
    )
