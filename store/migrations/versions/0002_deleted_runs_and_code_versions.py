"""Which code trained a run, and which runs are gone whose files may still lie somewhere?"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("runs", sa.Column("code_version", sa.Text(), nullable=True))
    op.create_table(
        "deleted_runs",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column(
            "deleted_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_deleted_runs")),
    )


def downgrade() -> None:
    op.drop_table("deleted_runs")
    op.drop_column("runs", "code_version")
