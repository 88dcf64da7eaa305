"""How is a sweep paused, resumed and extended as one? Its runs are changed by a fixed number of statements."""

from collections.abc import Sequence
from typing import Literal
from uuid import UUID

from sqlalchemy import ARRAY, Uuid, any_, func, insert, literal, select, update
from sqlalchemy.orm import Session

from store import events, runs
from store.copying import copy_rows
from store.runs import NewRun
from store.status import Priority, Status
from store.sweeps import get
from store.tables import OutboxRow, RunRow, SweepRow, SweepRunRow
from store.transitions import move_all


def pause(session: Session, sweep_id: UUID) -> int:
    """Pause every run that this sweep made and that waits or trains; runs that it reuses go on.

    Returns:
        How many runs were paused or asked to stop.

    Raises:
        NotFound: There is no such sweep.
    """
    get(session, sweep_id)
    locked = _locked(session, sweep_id, (Status.QUEUED, Status.RUNNING))
    paused = move_all(session, locked, Status.PAUSED, among={Status.QUEUED})
    events.record_many(session, paused, "paused", "paused with its sweep")
    asked = _flag(session, locked, wanted=True)
    events.record_many(session, asked, "pause_requested", "asked with its sweep")
    return len(paused) + len(asked)


def resume(session: Session, sweep_id: UUID) -> int:
    """Queue every paused run that this sweep made, and take back each pause that is not yet carried out.

    Returns:
        How many runs go on.

    Raises:
        NotFound: There is no such sweep.
    """
    get(session, sweep_id)
    locked = _locked(session, sweep_id, (Status.PAUSED, Status.RUNNING))
    queued = move_all(session, locked, Status.QUEUED, among={Status.PAUSED})
    now = {"queued_at": func.clock_timestamp(), "not_before": func.clock_timestamp(), "attempts_charged": 0}
    _update(session, queued, now)
    hints = select(RunRow.id, RunRow.priority).where(RunRow.id == any_(literal(queued, ARRAY(Uuid))))
    session.execute(insert(OutboxRow).from_select(["run_id", "priority"], hints))
    events.record_many(session, queued, "resumed", "queued again with its sweep")
    taken_back = _flag(session, locked, wanted=False)
    events.record_many(session, taken_back, "resumed", "the pause was taken back")
    return len(queued) + len(taken_back)


def extend(
    session: Session,
    sweep_id: UUID,
    cells: Sequence[NewRun],
    *,
    dedupe: Literal["reuse", "force"] = "force",
    priority: int = Priority.NORMAL,
) -> SweepRow:
    """Add cells to a sweep behind those that it has, all or nothing; the caller holds the sweep's lock.

    Args:
        cells: One new run per cell; a configuration that the sweep has already is left out.
        dedupe: As in `sweeps.add`.
    """
    sweep = get(session, sweep_id)
    of_sweep = SweepRunRow.sweep_id == sweep_id
    there = select(RunRow.config_hash).join(SweepRunRow, SweepRunRow.run_id == RunRow.id).where(of_sweep)
    known = set(session.scalars(there))
    wanted = [cell for cell in cells if cell.config_hash not in known]
    code_version = wanted[0].code_version if wanted else None
    reusable = runs.to_reuse(session, (c.config_hash for c in wanted), code_version) if dedupe == "reuse" else {}
    fresh = [cell for cell in wanted if cell.config_hash not in reusable]
    made = iter(runs.add_many(session, fresh, sweep_id=sweep_id, priority=priority))
    ids = [reusable.get(cell.config_hash) or next(made) for cell in wanted]
    columns = {"sweep_id": "uuid", "position": "int4", "run_id": "uuid"}
    places = ((sweep_id, sweep.total + place, id) for place, id in enumerate(ids))
    copy_rows(session, SweepRunRow.__tablename__, columns, places)
    sweep.total += len(ids)
    sweep.reused += len(ids) - len(fresh)
    session.flush()
    return sweep


def lock(session: Session, sweep_id: UUID) -> SweepRow:
    """The sweep, locked until the transaction ends, so that two do not extend it at once.

    Raises:
        NotFound: There is no such sweep.
    """
    get(session, sweep_id)
    locked = select(SweepRow).where(SweepRow.id == sweep_id).with_for_update(key_share=True)
    return session.scalars(locked.execution_options(populate_existing=True)).one()


def _locked(session: Session, sweep_id: UUID, among: Sequence[Status]) -> Sequence[UUID]:
    return session.scalars(
        select(RunRow.id)
        .where(RunRow.sweep_id == sweep_id, RunRow.status.in_(among))
        .order_by(RunRow.id)
        .with_for_update(key_share=True)
    ).all()


def _flag(session: Session, run_ids: Sequence[UUID], *, wanted: bool) -> list[UUID]:
    """Ask the running ones for a pause, or take the wish back; those that it changed."""
    changed = update(RunRow).where(
        RunRow.id == any_(literal(list(run_ids), ARRAY(Uuid))),
        RunRow.status == Status.RUNNING,
        RunRow.pause_requested.is_(not wanted),
    )
    returned = changed.values(pause_requested=wanted).returning(RunRow.id)
    return list(session.scalars(returned, execution_options={"synchronize_session": False}))


def _update(session: Session, run_ids: Sequence[UUID], values: dict[str, object]) -> None:
    wanted = update(RunRow).where(RunRow.id == any_(literal(list(run_ids), ARRAY(Uuid)))).values(values)
    session.execute(wanted, execution_options={"synchronize_session": False})
