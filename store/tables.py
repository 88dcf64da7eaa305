"""How is everything laid out in Postgres? One class per table, with its checks and indexes."""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    DateTime,
    Double,
    Enum,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from store.status import FailureClass, Outcome, Priority, Status


def _one_of(names: type[StrEnum], column: str) -> Enum:
    """Text restricted to the enumeration's values by a check constraint."""
    return Enum(
        names,
        name=column,
        native_enum=False,
        create_constraint=True,
        length=16,
        values_callable=lambda kind: [member.value for member in kind],
    )


class Base(DeclarativeBase):
    """Root of all tables."""

    metadata = MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 (SQLAlchemy reads it as it stands)
        str: Text(),
        datetime: DateTime(timezone=True),
        UUID: Uuid(),
        dict[str, Any]: JSONB(),
        dict[str, str]: JSONB(),
        list[int]: ARRAY(Integer),
        list[float]: ARRAY(Double),
    }


class SweepRow(Base):
    """A grid of runs submitted together: `total` cells, of which `reused` were filled by runs that were there.

    `match` names what the cells were given in common: d_state, parameters or flops.
    """

    __tablename__ = "sweeps"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    name: Mapped[str | None]
    config: Mapped[dict[str, Any]]
    grid: Mapped[dict[str, Any]]
    combinations: Mapped[list[Any]] = mapped_column(JSONB, server_default=text("'[]'::jsonb"))
    match: Mapped[str] = mapped_column(server_default=text("'d_state'"))
    total: Mapped[int]
    reused: Mapped[int] = mapped_column(server_default=text("0"))
    created_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())

    __table_args__ = (Index("ix_sweeps_newest", text("created_at DESC"), text("id DESC")),)


class RunRow(Base):
    """One training run. `sweep_id` is the sweep that made it; `step` counts completed updates.

    `attempt` numbers the claims; `attempts_charged` are those that count against `attempt_budget`. `code_version` is
    that of whoever submitted the run, and once it trains that of its trainer. `needs_data` names the published data
    that a worker must have to train it; `confusion` counts the test examples by (class, class said).
    """

    __tablename__ = "runs"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    name: Mapped[str | None]
    sweep_id: Mapped[UUID | None] = mapped_column(ForeignKey("sweeps.id", ondelete="SET NULL"))
    config: Mapped[dict[str, Any]]
    config_hash: Mapped[str]
    cell: Mapped[str]
    task: Mapped[str]
    depth: Mapped[int]
    seed: Mapped[int] = mapped_column(BigInteger)
    status: Mapped[Status] = mapped_column(_one_of(Status, "status"), server_default=Status.QUEUED)
    priority: Mapped[int] = mapped_column(SmallInteger, server_default=text(str(int(Priority.NORMAL))))
    failure_class: Mapped[FailureClass | None] = mapped_column(_one_of(FailureClass, "failure_class"))
    reason: Mapped[str | None]
    attempt: Mapped[int] = mapped_column(server_default=text("0"))
    attempts_charged: Mapped[int] = mapped_column(server_default=text("0"))
    attempt_budget: Mapped[int] = mapped_column(server_default=text("3"))
    lease_token: Mapped[UUID | None]
    lease_expires_at: Mapped[datetime | None]
    worker_id: Mapped[str | None]
    cancel_requested: Mapped[bool] = mapped_column(server_default=text("false"))
    pause_requested: Mapped[bool] = mapped_column(server_default=text("false"))
    step: Mapped[int] = mapped_column(server_default=text("0"))
    total_steps: Mapped[int]
    not_before: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
    created_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
    queued_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    parameter_count: Mapped[int | None] = mapped_column(BigInteger)
    device: Mapped[str | None]
    divergence_step: Mapped[int | None]
    divergence_layer: Mapped[int | None]
    divergence_kind: Mapped[str | None]
    profile_positions: Mapped[list[int] | None]
    code_version: Mapped[str | None]
    needs_data: Mapped[str | None]
    confusion: Mapped[list[Any] | None] = mapped_column(JSONB(none_as_null=True), deferred=True)

    __table_args__ = (
        CheckConstraint("total_steps >= 1 AND step >= 0", name="steps"),
        CheckConstraint("attempt_budget >= 1 AND attempts_charged BETWEEN 0 AND attempt", name="attempts"),
        CheckConstraint("(status IN ('running', 'cancelling')) = (lease_token IS NOT NULL)", name="lease_token"),
        CheckConstraint("(lease_token IS NULL) = (lease_expires_at IS NULL)", name="lease_expiry"),
        CheckConstraint("(status = 'failed') = (failure_class IS NOT NULL)", name="failed_has_class"),
        CheckConstraint("(status = 'diverged') = (divergence_step IS NOT NULL)", name="diverged_has_step"),
        CheckConstraint(
            "(status IN ('succeeded', 'diverged', 'failed', 'cancelled')) = (finished_at IS NOT NULL)",
            name="terminal_has_end",
        ),
        Index("ix_runs_newest", text("created_at DESC"), text("id DESC")),
        Index("ix_runs_status_newest", "status", text("created_at DESC"), text("id DESC")),
        Index("ix_runs_group", "task", "cell", "depth", "seed"),
        Index("ix_runs_config_hash", "config_hash", text("created_at DESC")),
        Index("ix_runs_sweep", "sweep_id"),
        Index("ix_runs_queue", "not_before", postgresql_where=text("status = 'queued'")),
        Index("ix_runs_data", "needs_data", postgresql_where=text("status = 'queued' AND needs_data IS NOT NULL")),
        Index("ix_runs_lease", "lease_expires_at", postgresql_where=text("status IN ('running', 'cancelling')")),
    )


class SweepRunRow(Base):
    """Which run fills which place of a sweep's grid; one run may stand in several sweeps."""

    __tablename__ = "sweep_runs"

    sweep_id: Mapped[UUID] = mapped_column(ForeignKey("sweeps.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[UUID] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))

    __table_args__ = (Index("ix_sweep_runs_run", "run_id"),)


class AttemptRow(Base):
    """One claim of a run. `resumed_from_step` is 0 for a fresh start and None until training has begun."""

    __tablename__ = "attempts"

    run_id: Mapped[UUID] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    worker_id: Mapped[str]
    host: Mapped[str]
    device: Mapped[str]
    started_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
    training_started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    outcome: Mapped[Outcome | None] = mapped_column(_one_of(Outcome, "outcome"))
    failure_class: Mapped[FailureClass | None] = mapped_column(_one_of(FailureClass, "failure_class"))
    reason: Mapped[str | None]
    resumed_from_step: Mapped[int | None]
    resumed_from_attempt: Mapped[int | None]
    environment: Mapped[dict[str, str] | None]

    __table_args__ = (CheckConstraint("(outcome IS NULL) = (ended_at IS NULL)", name="ended_has_outcome"),)


class EventRow(Base):
    """What happened to a run, in order; ids of one run are given out under the lock of its row."""

    __tablename__ = "events"

    run_id: Mapped[UUID] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
    kind: Mapped[str]
    attempt: Mapped[int]
    message: Mapped[str]


class OutboxRow(Base):
    """A hint that still has to be published, or was published a short while ago."""

    __tablename__ = "outbox"

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    run_id: Mapped[UUID] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    priority: Mapped[int] = mapped_column(SmallInteger)
    created_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
    published_at: Mapped[datetime | None]

    __table_args__ = (
        Index("ix_outbox_waiting", text("priority DESC"), "id", postgresql_where=text("published_at IS NULL")),
        Index("ix_outbox_published", "published_at", postgresql_where=text("published_at IS NOT NULL")),
        Index("ix_outbox_run", "run_id"),
    )


class IdempotencyRow(Base):
    """Which answer an idempotency key stands for; `resource_id` is the run or sweep that it made."""

    __tablename__ = "idempotency_keys"

    scope: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    body_sha256: Mapped[str]
    resource_id: Mapped[UUID | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())


class MetricRow(Base):
    """One point of a series. No foreign key: the fence holds the run's row, and a check per point costs the ingest."""

    __tablename__ = "metrics"

    run_id: Mapped[UUID] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    attempt: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    value: Mapped[float] = mapped_column(Double)


class MetricBlockRow(Base):
    """What the points of one block of steps of one attempt come to; minimum and maximum are over finite values."""

    __tablename__ = "metric_blocks"

    run_id: Mapped[UUID] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    block: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    first_step: Mapped[int]
    last_step: Mapped[int]
    first: Mapped[float] = mapped_column(Double)
    last: Mapped[float] = mapped_column(Double)
    minimum: Mapped[float | None] = mapped_column(Double)
    maximum: Mapped[float | None] = mapped_column(Double)
    points: Mapped[int]
    non_finite: Mapped[int]


class HiddenNormRow(Base):
    """Consecutive records of one statistic of the hidden norms in one attempt.

    The arrays over steps and layers are packed (store/trace_encoding.py); where `unit` is set, an entry per layer, they
    hold what is left over beside the row of the base statistic with the same first step (store/traces.py).
    """

    __tablename__ = "hidden_norms"

    run_id: Mapped[UUID] = mapped_column(primary_key=True)
    statistic: Mapped[str] = mapped_column(primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    first_step: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    last_step: Mapped[int]
    steps: Mapped[list[int]]
    layers: Mapped[int]
    unit: Mapped[list[float] | None]
    mean: Mapped[bytes]
    deviation: Mapped[bytes]
    minimum: Mapped[bytes]
    maximum: Mapped[bytes]
    non_finite: Mapped[bytes]
    profile_steps: Mapped[list[int]]
    profile: Mapped[bytes]


class LogRow(Base):
    """One line that a trainer or its supervisor wrote."""

    __tablename__ = "logs"

    run_id: Mapped[UUID] = mapped_column(primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    sequence: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    at: Mapped[datetime]
    level: Mapped[str]
    message: Mapped[str]


class CheckpointRow(Base):
    """A checkpoint that lay complete on disk when it was recorded."""

    __tablename__ = "checkpoints"

    run_id: Mapped[UUID] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    attempt: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    path: Mapped[str]
    sha256: Mapped[str]
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())


class DeletedRunRow(Base):
    """A run that was deleted a while ago; workers remove the files that it left."""

    __tablename__ = "deleted_runs"

    run_id: Mapped[UUID] = mapped_column(primary_key=True)
    deleted_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())


class WorkerRow(Base):
    """A worker process, the device that it holds, the published data at hand there, and how full its memory is.

    `resident_mib` is what the worker, its supervisor and its trainer hold; None stands where the system does not say.
    """

    __tablename__ = "workers"

    id: Mapped[str] = mapped_column(primary_key=True)
    host: Mapped[str]
    device: Mapped[str]
    device_uuid: Mapped[str]
    pid: Mapped[int]
    started_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
    beat_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
    run_id: Mapped[UUID | None]
    environment: Mapped[dict[str, str]]
    data: Mapped[list[str]] = mapped_column(JSONB, server_default=text("'[]'::jsonb"))
    resident_mib: Mapped[int | None]
    host_total_mib: Mapped[int | None]
    host_available_mib: Mapped[int | None]

    __table_args__ = (UniqueConstraint("device_uuid"),)


class TokenRow(Base):
    """A bearer token, kept as its SHA-256 only."""

    __tablename__ = "tokens"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    name: Mapped[str]
    sha256: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
    revoked_at: Mapped[datetime | None]

    __table_args__ = (UniqueConstraint("sha256"),)
