"""What did a sweep give all of its cells in common? Sweeps of earlier revisions count as of equal d_state."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("sweeps", sa.Column("match", sa.Text(), server_default=sa.text("'d_state'"), nullable=False))


def downgrade() -> None:
    op.drop_column("sweeps", "match")
