"""Which tables does the service begin with?"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "hidden_norms",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("statistic", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("mean", sa.ARRAY(sa.Double()), nullable=False),
        sa.Column("deviation", sa.ARRAY(sa.Double()), nullable=False),
        sa.Column("minimum", sa.ARRAY(sa.Double()), nullable=False),
        sa.Column("maximum", sa.ARRAY(sa.Double()), nullable=False),
        sa.Column("non_finite", sa.ARRAY(sa.Integer()), nullable=False),
        sa.Column("profile", sa.ARRAY(sa.REAL()), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "statistic", "step", "attempt", name=op.f("pk_hidden_norms")),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("body_sha256", sa.Text(), nullable=False),
        sa.Column("resource_id", sa.Uuid(), nullable=True),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("scope", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_table(
        "logs",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("sequence", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("level", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "attempt", "sequence", name=op.f("pk_logs")),
    )
    op.create_table(
        "metrics",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "key", "step", "attempt", name=op.f("pk_metrics")),
    )
    op.create_table(
        "sweeps",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("config", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("grid", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("reused", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sweeps")),
    )
    op.create_index(
        "ix_sweeps_newest", "sweeps", [sa.literal_column("created_at DESC"), sa.literal_column("id DESC")], unique=False
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("sha256", name=op.f("uq_tokens_sha256")),
    )
    op.create_table(
        "workers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("device_uuid", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column(
            "started_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("beat_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=True),
        sa.Column("environment", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workers")),
        sa.UniqueConstraint("device_uuid", name=op.f("uq_workers_device_uuid")),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("sweep_id", sa.Uuid(), nullable=True),
        sa.Column("config", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("config_hash", sa.Text(), nullable=False),
        sa.Column("cell", sa.Text(), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column(
            "status",
            sa.Enum(
                "queued",
                "running",
                "paused",
                "cancelling",
                "succeeded",
                "diverged",
                "failed",
                "cancelled",
                name="status",
                native_enum=False,
                create_constraint=True,
                length=16,
            ),
            server_default="queued",
            nullable=False,
        ),
        sa.Column("priority", sa.SmallInteger(), server_default=sa.text("5"), nullable=False),
        sa.Column(
            "failure_class",
            sa.Enum(
                "code_error",
                "out_of_memory",
                "worker_lost",
                "stalled",
                "timeout",
                "bad_config",
                "data_missing",
                name="failure_class",
                native_enum=False,
                create_constraint=True,
                length=16,
            ),
            nullable=True,
        ),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("attempt", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("attempts_charged", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("attempt_budget", sa.Integer(), server_default=sa.text("3"), nullable=False),
        sa.Column("lease_token", sa.Uuid(), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("worker_id", sa.Text(), nullable=True),
        sa.Column("cancel_requested", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("pause_requested", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("step", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("total_steps", sa.Integer(), nullable=False),
        sa.Column(
            "not_before", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("queued_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("parameter_count", sa.BigInteger(), nullable=True),
        sa.Column("device", sa.Text(), nullable=True),
        sa.Column("divergence_step", sa.Integer(), nullable=True),
        sa.Column("divergence_layer", sa.Integer(), nullable=True),
        sa.Column("divergence_kind", sa.Text(), nullable=True),
        sa.Column("profile_positions", sa.ARRAY(sa.Integer()), nullable=True),
        sa.CheckConstraint(
            "(status = 'diverged') = (divergence_step IS NOT NULL)", name=op.f("ck_runs_diverged_has_step")
        ),
        sa.CheckConstraint("(status = 'failed') = (failure_class IS NOT NULL)", name=op.f("ck_runs_failed_has_class")),
        sa.CheckConstraint(
            "(status IN ('running', 'cancelling')) = (lease_token IS NOT NULL)", name=op.f("ck_runs_lease_token")
        ),
        sa.CheckConstraint(
            "(status IN ('succeeded', 'diverged', 'failed', 'cancelled')) = (finished_at IS NOT NULL)",
            name=op.f("ck_runs_terminal_has_end"),
        ),
        sa.CheckConstraint("(lease_token IS NULL) = (lease_expires_at IS NULL)", name=op.f("ck_runs_lease_expiry")),
        sa.CheckConstraint(
            "attempt_budget >= 1 AND attempts_charged BETWEEN 0 AND attempt", name=op.f("ck_runs_attempts")
        ),
        sa.CheckConstraint("total_steps >= 1 AND step >= 0", name=op.f("ck_runs_steps")),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweeps.id"], name=op.f("fk_runs_sweep_id"), ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    op.create_index("ix_runs_config_hash", "runs", ["config_hash", sa.literal_column("created_at DESC")], unique=False)
    op.create_index("ix_runs_group", "runs", ["task", "cell", "depth", "seed"], unique=False)
    op.create_index(
        "ix_runs_lease",
        "runs",
        ["lease_expires_at"],
        unique=False,
        postgresql_where=sa.text("status IN ('running', 'cancelling')"),
    )
    op.create_index(
        "ix_runs_newest", "runs", [sa.literal_column("created_at DESC"), sa.literal_column("id DESC")], unique=False
    )
    op.create_index(
        "ix_runs_queue", "runs", ["not_before"], unique=False, postgresql_where=sa.text("status = 'queued'")
    )
    op.create_index(
        "ix_runs_status_newest",
        "runs",
        ["status", sa.literal_column("created_at DESC"), sa.literal_column("id DESC")],
        unique=False,
    )
    op.create_index("ix_runs_sweep", "runs", ["sweep_id"], unique=False)
    op.create_table(
        "attempts",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("worker_id", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column(
            "started_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("training_started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "outcome",
            sa.Enum(
                "succeeded",
                "diverged",
                "failed",
                "cancelled",
                "paused",
                "gave_back",
                name="outcome",
                native_enum=False,
                create_constraint=True,
                length=16,
            ),
            nullable=True,
        ),
        sa.Column(
            "failure_class",
            sa.Enum(
                "code_error",
                "out_of_memory",
                "worker_lost",
                "stalled",
                "timeout",
                "bad_config",
                "data_missing",
                name="failure_class",
                native_enum=False,
                create_constraint=True,
                length=16,
            ),
            nullable=True,
        ),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("resumed_from_step", sa.Integer(), nullable=True),
        sa.Column("resumed_from_attempt", sa.Integer(), nullable=True),
        sa.Column("environment", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.CheckConstraint("(outcome IS NULL) = (ended_at IS NULL)", name=op.f("ck_attempts_ended_has_outcome")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_attempts_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "number", name=op.f("pk_attempts")),
    )
    op.create_table(
        "checkpoints",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("step", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_checkpoints_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "step", "attempt", name=op.f("pk_checkpoints")),
    )
    op.create_table(
        "events",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_events_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "id", name=op.f("pk_events")),
    )
    op.create_table(
        "outbox",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("priority", sa.SmallInteger(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_outbox_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
    )
    op.create_index(
        "ix_outbox_published",
        "outbox",
        ["published_at"],
        unique=False,
        postgresql_where=sa.text("published_at IS NOT NULL"),
    )
    op.create_index("ix_outbox_run", "outbox", ["run_id"], unique=False)
    op.create_index(
        "ix_outbox_waiting",
        "outbox",
        [sa.literal_column("priority DESC"), "id"],
        unique=False,
        postgresql_where=sa.text("published_at IS NULL"),
    )
    op.create_table(
        "sweep_runs",
        sa.Column("sweep_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_sweep_runs_run_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweeps.id"], name=op.f("fk_sweep_runs_sweep_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("sweep_id", "position", name=op.f("pk_sweep_runs")),
    )
    op.create_index("ix_sweep_runs_run", "sweep_runs", ["run_id"], unique=False)
