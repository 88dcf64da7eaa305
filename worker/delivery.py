"""How do an attempt's words and its end get into the store? Each in one fenced transaction, each stored once."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import psycopg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session, sessionmaker

from rotrnn_core.records import Checkpoint, CheckpointMissed, Confusion, Evaluation, HiddenNorms, Loss, Started
from store import ingest, runs
from store.status import Status
from worker.messages import Log, from_line
from worker.places import relative
from worker.spool import Entry, Spool
from worker.verdict import Finish, GiveBack


@dataclass(frozen=True)
class Fence:
    """Which attempt writes: what each write of a worker is checked against."""

    run_id: UUID
    attempt: int
    token: UUID

    def header(self) -> dict[str, str | int]:
        """As the first line of the attempt's spool."""
        return {"run_id": str(self.run_id), "attempt": self.attempt, "token": str(self.token)}

    @classmethod
    def of(cls, spool: Spool) -> "Fence":
        """The attempt that a spool belongs to.

        Raises:
            ValueError: The header is no attempt's.
        """
        header = spool.header
        try:
            return cls(UUID(header["run_id"]), int(header["attempt"]), UUID(header["token"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{spool.path} names no attempt") from error


def deliver(sessions: sessionmaker[Session], fence: Fence, spool: Spool, artifacts: str) -> Sequence[Entry]:
    """Write the oldest undelivered entries to the store.

    Returns:
        What was written; empty when nothing waits.

    Raises:
        LeaseLost: The run is not this attempt's any more; nothing was written.
        Exception: The store is away or refuses (see `is_away`); nothing was written, or it was and may be again.
    """
    spool.sync()
    entries = spool.pending()
    if entries:
        with sessions.begin() as session:
            ingest.write(session, fence.run_id, fence.attempt, fence.token, to_batch(entries, artifacts))
        spool.delivered(entries[-1])
    return entries


def to_batch(entries: Sequence[Entry], artifacts: str) -> ingest.Batch:
    """The entries as the store takes them; paths of checkpoints become relative to `artifacts`."""
    metrics: list[tuple[str, int, float]] = []
    hidden_norms: list[HiddenNorms] = []
    logs: list[tuple[int, datetime, str, str]] = []
    checkpoints: list[Checkpoint] = []
    started: Started | None = None
    confusion: Sequence[Sequence[int]] | None = None
    steps = [0]
    for entry in entries:
        message = from_line(entry.line)
        match message:
            case Loss() | Evaluation():
                metrics += [(key, message.step, value) for key, value in message.metrics().items()]
            case Confusion():
                confusion = message.counts
            case HiddenNorms():
                hidden_norms.append(message)
            case Log():
                logs.append((entry.sequence, datetime.fromisoformat(entry.at), message.level, message.message))
            case Checkpoint():
                checkpoints.append(dataclasses.replace(message, path=relative(artifacts, message.path)))
            case CheckpointMissed():
                missed = f"no checkpoint of step {message.step}, and training goes on: {message.reason}"
                logs.append((entry.sequence, datetime.fromisoformat(entry.at), "warning", missed))
            case Started():
                started = message
        steps.append(getattr(message, "step", 0))
    return ingest.Batch(metrics, hidden_norms, logs, checkpoints, max(steps), started, confusion)


def conclude(sessions: sessionmaker[Session], fence: Fence, verdict: Finish | GiveBack) -> Status:
    """Store how the attempt ended.

    Returns:
        The state that the run is in now.

    Raises:
        LeaseLost: The run is not this attempt's any more.
        Exception: The store is away or refuses (see `is_away`).
    """
    with sessions.begin() as session:
        if isinstance(verdict, GiveBack):
            return runs.give_back(session, fence.run_id, fence.attempt, fence.token, verdict.reason)
        return runs.finish(
            session,
            fence.run_id,
            fence.attempt,
            fence.token,
            status=verdict.status,
            failure_class=verdict.failure_class,
            reason=verdict.reason,
            divergence=verdict.divergence,
        )


def is_away(error: Exception) -> bool:
    """Whether this error says that the database cannot be reached or is busy now, and not that it refuses the data."""
    original = error.orig if isinstance(error, DBAPIError) else error
    refusals = psycopg.DataError | psycopg.IntegrityError | psycopg.ProgrammingError
    return isinstance(original, psycopg.Error | PoolTimeout) and not isinstance(original, refusals)


def first_line(error: Exception) -> str:
    """What a log line shows of an error of the database."""
    return str(error).partition("\n")[0]
