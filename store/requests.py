"""What may people ask of a run? Cancel, pause and resume, which work with no worker alive."""

from uuid import UUID

from sqlalchemy.orm import Session

from store import events
from store.errors import IllegalMove
from store.status import Status
from store.tables import RunRow
from store.transitions import enqueue, locked, move


def request_cancel(session: Session, run_id: UUID) -> RunRow:
    """Cancel the run: at once where nobody works on it, else by its worker's next beat or the end of its lease.

    Raises:
        NotFound: There is no such run.
        IllegalMove: The run has ended.
    """
    run = locked(session, run_id)
    if run.status is Status.CANCELLING:
        return run
    if run.status is Status.RUNNING:
        move(run, Status.CANCELLING)
        events.record(session, run, "cancel_requested", f"asked of {run.worker_id}")
    else:
        move(run, Status.CANCELLED)
        events.record(session, run, "cancelled", "cancelled as asked")
    session.flush()
    return run


def request_pause(session: Session, run_id: UUID) -> RunRow:
    """Pause the run: at once where nobody works on it, else after its worker has written a checkpoint.

    Raises:
        NotFound: There is no such run.
        IllegalMove: The run has ended or is being cancelled.
    """
    run = locked(session, run_id)
    if run.status is Status.PAUSED:
        return run
    if run.status is Status.RUNNING and run.pause_requested:
        return run
    if run.status is Status.RUNNING:
        run.pause_requested = True
        events.record(session, run, "pause_requested", f"asked of {run.worker_id}")
    else:
        move(run, Status.PAUSED)
        events.record(session, run, "paused", "paused as asked")
    session.flush()
    return run


def resume(session: Session, run_id: UUID) -> RunRow:
    """Queue a paused, failed or cancelled run again with a fresh attempt budget; take back a pause not yet carried out.

    Raises:
        NotFound: There is no such run.
        IllegalMove: The run is in another state.
    """
    run = locked(session, run_id)
    if run.status is Status.RUNNING and run.pause_requested:
        run.pause_requested = False
        events.record(session, run, "resumed", "the pause was taken back")
    elif run.status in (Status.PAUSED, Status.FAILED, Status.CANCELLED):
        enqueue(session, run)
        run.attempts_charged = 0
        events.record(session, run, "resumed", "queued again as asked")
    else:
        raise IllegalMove(run.id, run.status, "resumed")
    session.flush()
    return run
