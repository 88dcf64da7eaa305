"""How does a run change its state? The only place that sets a status on a row, after asking the list of moves."""

from collections.abc import Sequence, Set
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Uuid, any_, func, literal, select, update
from sqlalchemy.orm import Session

from store import events
from store.errors import IllegalMove, NotFound
from store.plain_text import storable
from store.status import LEASED, MOVES, RETRIES, TERMINAL, FailureClass, Outcome, Status, sources
from store.tables import AttemptRow, OutboxRow, RunRow


def locked(session: Session, run_id: UUID) -> RunRow:
    """The run's row as it is now, locked until the transaction ends.

    Raises:
        NotFound: There is no such run.
    """
    run = session.scalars(
        select(RunRow)
        .where(RunRow.id == run_id)
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    ).one_or_none()
    if run is None:
        raise NotFound("run", run_id)
    return run


def move(run: RunRow, to: Status) -> None:
    """Set the status of a locked run, and all that follows from it.

    Raises:
        IllegalMove: The move is not in the list of moves.
    """
    if to not in MOVES[run.status]:
        raise IllegalMove(run.id, run.status, to)
    for column, value in _following(to).items():
        setattr(run, column, value)


def move_all(session: Session, run_ids: Sequence[UUID], to: Status, *, among: Set[Status]) -> list[UUID]:
    """Move those of the locked runs that are in one of the states `among`, in one statement; their ids."""
    assert among <= sources(to)
    return list(
        session.scalars(
            update(RunRow)
            .where(RunRow.id == any_(literal(list(run_ids), ARRAY(Uuid))), RunRow.status.in_(among))
            .values(_following(to))
            .returning(RunRow.id),
            execution_options={"synchronize_session": False},
        )
    )


def _following(to: Status) -> dict[str, Any]:
    """The columns that a state sets: end time, lease and requests; an earlier failure is forgotten."""
    values: dict[str, Any] = {
        "status": to,
        "finished_at": func.clock_timestamp() if to in TERMINAL else None,
        "failure_class": None,
        "reason": None,
        "cancel_requested": to is Status.CANCELLING,
    }
    if to not in LEASED:
        values |= {"lease_token": None, "lease_expires_at": None, "pause_requested": False}
    return values


def enqueue(session: Session, run: RunRow, *, delay_s: float = 0.0) -> None:
    """Put the run (back) into the queue, with its outbox row, not to be claimed before the delay is over."""
    move(run, Status.QUEUED)
    run.queued_at = func.clock_timestamp()
    run.not_before = func.clock_timestamp() + func.make_interval(0, 0, 0, 0, 0, 0, delay_s)
    session.add(OutboxRow(run_id=run.id, priority=run.priority))


def end_attempt(
    session: Session,
    run: RunRow,
    outcome: Outcome,
    *,
    failure_class: FailureClass | None = None,
    reason: str | None = None,
) -> None:
    """Close the run's present attempt."""
    attempt = session.get_one(AttemptRow, (run.id, run.attempt), populate_existing=True)
    attempt.ended_at = func.clock_timestamp()
    attempt.outcome = outcome
    attempt.failure_class = failure_class
    attempt.reason = None if reason is None else storable(reason)


def fail(session: Session, run: RunRow, failure_class: FailureClass, reason: str) -> None:
    """End the present attempt as failed, and by the retry policy queue, pause or fail the run."""
    reason = storable(reason)
    end_attempt(session, run, Outcome.FAILED, failure_class=failure_class, reason=reason)
    run.attempts_charged += 1
    retry = RETRIES[failure_class]
    if retry is not None and run.attempts_charged < run.attempt_budget:
        if run.pause_requested:
            move(run, Status.PAUSED)
            events.record(session, run, "paused", f"{failure_class}: {reason}; paused as asked")
            return
        delay_s = retry.delay_s(run.attempts_charged)
        enqueue(session, run, delay_s=delay_s)
        left = run.attempt_budget - run.attempts_charged
        events.record(session, run, "requeued", f"{failure_class}: {reason}; next try in {delay_s:g} s, {left} left")
        return
    move(run, Status.FAILED)
    run.failure_class = failure_class
    run.reason = reason
    events.record(session, run, "failed", f"{failure_class}: {reason}")
