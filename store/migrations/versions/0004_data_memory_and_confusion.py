"""Which data and how much memory has each worker, which data does a run need, and what did its network mix up?"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"

_PUBLISHED = (
    "fashion-mnist",
    "image",
    "image-colour",
    "path-x",
    "pathfinder",
    "retrieval",
    "sequential-mnist",
    "speech-commands",
    "text",
)
"""The tasks of this revision whose examples are published files alone."""


def upgrade() -> None:
    op.add_column(
        "workers",
        sa.Column(
            "data", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'[]'::jsonb"), nullable=False
        ),
    )
    for name in ("resident_mib", "host_total_mib", "host_available_mib"):
        op.add_column("workers", sa.Column(name, sa.Integer(), nullable=True))
    op.add_column("runs", sa.Column("needs_data", sa.Text(), nullable=True))
    op.add_column("runs", sa.Column("confusion", postgresql.JSONB(astext_type=sa.Text()), nullable=True))
    op.execute(
        sa.text(
            "UPDATE runs SET needs_data = task WHERE task = ANY(:published) OR config->'task'->>'release' = 'true'"
        ).bindparams(sa.bindparam("published", list(_PUBLISHED), sa.ARRAY(sa.Text)))
    )
    op.create_index(
        "ix_runs_data",
        "runs",
        ["needs_data"],
        postgresql_where=sa.text("status = 'queued' AND needs_data IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_runs_data", "runs")
    op.drop_column("runs", "confusion")
    op.drop_column("runs", "needs_data")
    for name in ("host_available_mib", "host_total_mib", "resident_mib", "data"):
        op.drop_column("workers", name)
