"""How do a worker's records get in? As one fenced batch: COPY into temporary tables, then INSERT what is new."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from store import events, metric_ingest, trace_ingest
from store.copying import copy_rows
from store.leases import fence
from store.plain_text import storable
from store.tables import AttemptRow, CheckpointRow, RunRow
from store.trace_ingest import NormsOfStep

_CHECKPOINTS = {"step": "int4", "path": "text", "sha256": "text", "size_bytes": "int8"}
_LOGS = {"sequence": "int8", "at": "timestamptz", "level": "text", "message": "text"}


class StoredCheckpoint(Protocol):
    """A checkpoint that lies complete on disk."""

    @property
    def step(self) -> int: ...
    @property
    def path(self) -> str: ...
    @property
    def sha256(self) -> str: ...
    @property
    def size_bytes(self) -> int: ...


class Start(Protocol):
    """The beginning of an attempt's training, fresh (step 0) or from a checkpoint at `step`."""

    @property
    def step(self) -> int: ...
    @property
    def total_steps(self) -> int: ...
    @property
    def parameter_count(self) -> int: ...
    @property
    def device(self) -> str: ...
    @property
    def profile_positions(self) -> Sequence[int]: ...
    @property
    def environment(self) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class Batch:
    """What an attempt has to say; a later attempt's series count only once its `started` is in.

    Args:
        metrics: (key, step, value).
        hidden_norms: Traces as the trainer records them.
        logs: (sequence, at, level, message); sequence counts the attempt's lines.
        checkpoints: Checkpoints as the trainer records them.
        step: Updates completed so far.
        started: The beginning of training.
        confusion: What the tested network took each class of the test split for.
    """

    metrics: Sequence[tuple[str, int, float]] = ()
    hidden_norms: Sequence[NormsOfStep] = ()
    logs: Sequence[tuple[int, datetime, str, str]] = ()
    checkpoints: Sequence[StoredCheckpoint] = ()
    step: int | None = None
    started: Start | None = None
    confusion: Sequence[Sequence[int]] | None = None


def write(session: Session, run_id: UUID, attempt: int, token: UUID, batch: Batch) -> None:
    """Store a batch; one that was sent before is stored once.

    Raises:
        LeaseLost: The lease is another's, or the run has ended; nothing is stored.
    """
    run = fence(session, run_id, attempt, token)
    if batch.started is not None:
        _begin(session, run, batch.started)
    if batch.step is not None and batch.step > run.step:
        run.step = batch.step
    if batch.confusion is not None:
        run.confusion = [list(row) for row in batch.confusion]
    logs = ((sequence, at, storable(level), storable(message)) for sequence, at, level, message in batch.logs)
    checkpoints = ((made.step, made.path, made.sha256, made.size_bytes) for made in batch.checkpoints)
    for table, columns, rows, number in (
        ("logs", _LOGS, logs, len(batch.logs)),
        ("checkpoints", _CHECKPOINTS, checkpoints, len(batch.checkpoints)),
    ):
        if number:
            _merge(session, run, table, columns, rows)
    if batch.metrics:
        metric_ingest.append(session, run, batch.metrics)
    if batch.hidden_norms:
        trace_ingest.append(session, run, batch.hidden_norms)
    session.flush()


def _begin(session: Session, run: RunRow, started: Start) -> None:
    attempt = session.get_one(AttemptRow, (run.id, run.attempt), populate_existing=True)
    if attempt.training_started_at is not None:
        return
    parent = _parent(session, run, started.step) if started.step > 0 else None
    attempt.training_started_at = func.clock_timestamp()
    attempt.resumed_from_step = started.step
    attempt.resumed_from_attempt = parent
    attempt.environment = {storable(key): storable(value) for key, value in started.environment.items()}
    run.step = started.step
    run.parameter_count = started.parameter_count
    run.device = storable(started.device)
    run.code_version = attempt.environment.get("code_version", run.code_version)
    run.profile_positions = list(started.profile_positions)
    where = f"begins on {run.device}" if parent is None else f"goes on from step {started.step} of attempt {parent}"
    events.record(session, run, "started", f"training {where}")


def _parent(session: Session, run: RunRow, step: int) -> int | None:
    """The attempt whose checkpoint at `step` the present one goes on from."""
    earlier = AttemptRow.run_id == run.id, AttemptRow.number < run.attempt
    wrote = select(func.max(CheckpointRow.attempt)).where(
        CheckpointRow.run_id == run.id, CheckpointRow.attempt < run.attempt, CheckpointRow.step == step
    )
    reached = select(func.max(AttemptRow.number)).where(*earlier, AttemptRow.resumed_from_step < step)
    return session.scalar(wrote) or session.scalar(reached)


def _merge(
    session: Session, run: RunRow, table: str, columns: Mapping[str, str], rows: Iterable[Sequence[Any]]
) -> None:
    incoming = f"incoming_{table}"
    typed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    names = ", ".join(columns)
    connection = session.connection()
    connection.execute(text(f"CREATE TEMPORARY TABLE IF NOT EXISTS {incoming} ({typed}) ON COMMIT DELETE ROWS"))
    copy_rows(session, incoming, columns, rows)
    connection.execute(
        text(
            f"INSERT INTO {table} (run_id, attempt, {names}) SELECT :run_id, :attempt, {names} FROM {incoming} "
            "ON CONFLICT DO NOTHING"
        ),
        {"run_id": run.id, "attempt": run.attempt},
    )
    connection.execute(text(f"TRUNCATE {incoming}"))
