"""Who may work on a run, and until when? Claim, beat, fence, end, give back, and the reaper of lost leases.

A lease ends when its run changes state, or when the reaper takes it after its expiry; until then its holder may beat
late, so that a database that was away for a while costs no run.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID, uuid4

from sqlalchemy import extract, func, literal, select, text, true, update
from sqlalchemy.orm import Session

from store import checkpoints, events
from store.errors import IllegalMove, LeaseLost
from store.plain_text import storable
from store.status import LEASED, TERMINAL, FailureClass, Outcome, Status, sources
from store.tables import AttemptRow, CheckpointRow, RunRow
from store.transitions import end_attempt, enqueue, fail, move


@dataclass(frozen=True)
class Claim:
    """A run that this worker now holds; checkpoints stand newest first."""

    run_id: UUID
    attempt: int
    token: UUID
    config: dict[str, Any]
    total_steps: int
    checkpoints: Sequence[CheckpointRow]


@dataclass(frozen=True)
class Beat:
    """What was asked for meanwhile."""

    cancel: bool
    pause: bool


class FirstNonFinite(Protocol):
    """Where a run diverged."""

    @property
    def step(self) -> int: ...
    @property
    def layer(self) -> int | None: ...
    @property
    def kind(self) -> str: ...


def claim(
    session: Session,
    run_id: UUID,
    *,
    worker_id: str,
    lease_s: float,
    host: str,
    device: str,
    data: Collection[str] | None = None,
) -> Claim | None:
    """Take a queued run whose time has come, in one compare-and-set; None when the message was stale or too early.

    Args:
        data: The published data that the worker has; a run that needs others is not taken. None leaves that open.
    """
    token = uuid4()
    able = true() if data is None else RunRow.needs_data.is_(None) | RunRow.needs_data.in_(data)
    run = session.scalars(
        update(RunRow)
        .where(
            RunRow.id == run_id,
            RunRow.status.in_(sources(Status.RUNNING)),
            RunRow.not_before <= func.clock_timestamp(),
            able,
        )
        .values(
            status=Status.RUNNING,
            attempt=RunRow.attempt + 1,
            lease_token=token,
            lease_expires_at=_from_now(lease_s),
            worker_id=worker_id,
            device=device,
            started_at=func.coalesce(RunRow.started_at, func.clock_timestamp()),
        )
        .returning(RunRow),
        execution_options={"populate_existing": True, "synchronize_session": False},
    ).one_or_none()
    if run is None:
        return None
    fresh = 0 if run.attempt == 1 else None
    session.add(
        AttemptRow(
            run_id=run_id, number=run.attempt, worker_id=worker_id, host=host, device=device, resumed_from_step=fresh
        )
    )
    events.record(session, run, "claimed", f"attempt {run.attempt} by {worker_id} on {device}")
    session.flush()
    return Claim(run_id, run.attempt, token, run.config, run.total_steps, checkpoints.newest_first(session, run_id))


def beat(session: Session, run_id: UUID, attempt: int, token: UUID, *, step: int | None, lease_s: float) -> Beat:
    """Prolong the lease and say how far training is.

    Raises:
        LeaseLost: The lease is another's, or the run has ended.
    """
    asked = session.execute(
        update(RunRow)
        .where(*_held(run_id, attempt, token))
        .values(lease_expires_at=_from_now(lease_s), step=func.greatest(RunRow.step, step))
        .returning(RunRow.cancel_requested, RunRow.pause_requested),
        execution_options={"synchronize_session": False},
    ).one_or_none()
    if asked is None:
        raise LeaseLost(run_id, attempt)
    return Beat(cancel=asked.cancel_requested, pause=asked.pause_requested)


def is_held_by(session: Session, run_id: UUID, worker_id: str) -> bool:
    """Whether this worker holds the run's lease and the lease has not run out."""
    held = select(RunRow.id).where(
        RunRow.id == run_id,
        RunRow.worker_id == worker_id,
        RunRow.status.in_(LEASED),
        RunRow.lease_expires_at >= func.clock_timestamp(),
    )
    return session.scalar(held) is not None


def fence(session: Session, run_id: UUID, attempt: int, token: UUID) -> RunRow:
    """The run's row, locked until the transaction ends, so that nobody takes the lease while its holder writes.

    Raises:
        LeaseLost: The lease is another's, or the run has ended.
    """
    run = session.scalars(
        select(RunRow)
        .where(*_held(run_id, attempt, token))
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    ).one_or_none()
    if run is None:
        raise LeaseLost(run_id, attempt)
    return run


def finish(
    session: Session,
    run_id: UUID,
    attempt: int,
    token: UUID,
    *,
    status: Status,
    failure_class: FailureClass | None = None,
    reason: str | None = None,
    divergence: FirstNonFinite | None = None,
) -> Status:
    """End the attempt; a run that was asked to cancel ends as cancelled, a failure goes by the retry policy.

    Args:
        status: succeeded, diverged (with divergence), failed (with failure_class) or cancelled.

    Returns:
        The state that the run is in now.

    Raises:
        LeaseLost: The lease is another's, or the run has ended.
        IllegalMove: cancelled, though nobody asked for it, or a state in which no attempt ends.
        ValueError: diverged without divergence, or failed without failure_class.
    """
    run = fence(session, run_id, attempt, token)
    if status not in TERMINAL:
        raise IllegalMove(run_id, run.status, status)
    if run.cancel_requested:
        _cancel(session, run, reason or "cancelled as asked")
    elif status == Status.FAILED:
        if failure_class is None:
            raise ValueError("a failed attempt needs its failure_class")
        fail(session, run, failure_class, reason or failure_class)
    elif status == Status.DIVERGED:
        if divergence is None:
            raise ValueError("a diverged attempt needs its divergence")
        where = "outside the blocks" if divergence.layer is None else f"in layer {divergence.layer}"
        end_attempt(session, run, Outcome.DIVERGED, reason=reason)
        move(run, Status.DIVERGED)
        run.divergence_step = divergence.step
        run.divergence_layer = divergence.layer
        run.divergence_kind = divergence.kind
        run.reason = None if reason is None else storable(reason)
        events.record(session, run, "diverged", f"{divergence.kind} not finite at step {divergence.step}, {where}")
    else:
        move(run, status)
        run.step = run.total_steps
        end_attempt(session, run, Outcome(status), reason=reason)
        events.record(session, run, status, f"all {run.total_steps} steps are done")
    session.flush()
    return run.status


def give_back(session: Session, run_id: UUID, attempt: int, token: UUID, reason: str) -> Status:
    """Hand the run back without charging the attempt: to the queue, or to paused or cancelled where that was asked.

    Returns:
        The state that the run is in now.

    Raises:
        LeaseLost: The lease is another's, or the run has ended.
    """
    run = fence(session, run_id, attempt, token)
    if run.cancel_requested:
        _cancel(session, run, reason)
    elif run.pause_requested:
        end_attempt(session, run, Outcome.PAUSED, reason=reason)
        move(run, Status.PAUSED)
        events.record(session, run, "paused", storable(reason))
    else:
        end_attempt(session, run, Outcome.GAVE_BACK, reason=reason)
        enqueue(session, run)
        events.record(session, run, "gave_back", storable(reason))
    session.flush()
    return run.status


def reap(session: Session, limit: int = 100, *, grace_s: float = 0.0) -> list[UUID]:
    """Take the leases that have expired: cancelling runs end, the others go by the retry policy of worker_lost.

    Args:
        limit: At most so many runs.
        grace_s: A server that was started less than this ago reaps nothing, since nobody could beat while it was away.

    Returns:
        The runs whose leases were taken.
    """
    up_s = extract("epoch", func.clock_timestamp() - func.pg_postmaster_start_time())
    lost = session.scalars(
        select(RunRow)
        .where(
            RunRow.status.in_(LEASED),
            RunRow.lease_expires_at < func.clock_timestamp(),
            up_s >= grace_s,
        )
        .order_by(RunRow.lease_expires_at)
        .limit(limit)
        .with_for_update(key_share=True, skip_locked=True)
        .execution_options(populate_existing=True)
    ).all()
    for run in lost:
        reason = f"worker {run.worker_id} was not heard of before its lease ran out"
        events.record(session, run, "lease_lost", reason)
        if run.cancel_requested:
            _cancel(session, run, reason)
        else:
            fail(session, run, FailureClass.WORKER_LOST, reason)
    session.flush()
    return [run.id for run in lost]


def _cancel(session: Session, run: RunRow, reason: str) -> None:
    end_attempt(session, run, Outcome.CANCELLED, reason=reason)
    move(run, Status.CANCELLED)
    events.record(session, run, "cancelled", storable(reason))


def _held(run_id: UUID, attempt: int, token: UUID) -> tuple[Any, ...]:
    return RunRow.id == run_id, RunRow.attempt == attempt, RunRow.lease_token == token, RunRow.status.in_(LEASED)


def _from_now(seconds: float) -> Any:
    return func.clock_timestamp() + literal(seconds) * text("interval '1 second'")
