"""Which sweeps are there? Grids of runs that are added, listed, counted and cancelled as one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID, uuid4

from sqlalchemy import func, select, tuple_
from sqlalchemy.orm import Session

from store import cursors, events, runs
from store.copying import copy_rows
from store.cursors import Page, cut
from store.errors import NotFound
from store.runs import NewRun
from store.status import LEASED, TERMINAL, Priority, Status, sources
from store.tables import RunRow, SweepRow, SweepRunRow
from store.transitions import move_all

"""Advisory lock: two sweeps that reuse runs are added one after the other, so that neither doubles the other's."""


@dataclass(frozen=True)
class Added:
    """A new sweep and its runs in the order of its cells."""

    sweep: SweepRow
    run_ids: list[UUID]


def add(
    session: Session,
    *,
    config: Mapping[str, Any],
    grid: Mapping[str, Any],
    combinations: Sequence[Mapping[str, Any]] = (),
    cells: Sequence[NewRun],
    name: str | None = None,
    match: str = "d_state",
    dedupe: Literal["reuse", "force"] = "force",
    priority: int = Priority.NORMAL,
    attempt_budget: int = 3,
) -> Added:
    """Add a sweep and its runs, all or nothing, by a fixed number of statements.

    Args:
        config: The configuration that all cells share, as submitted.
        grid: The fields that vary, as submitted.
        combinations: The combinations of further fields, as submitted.
        cells: One run per cell.
        match: What the cells were given in common.
        dedupe: "reuse" fills a cell with a run of the same configuration and code where one fits; "force" makes every
            run anew.
    """
    sweep = SweepRow(
        id=uuid4(),
        name=name,
        config=dict(config),
        grid=dict(grid),
        combinations=[dict(one) for one in combinations],
        match=match,
        total=len(cells),
    )
    session.add(sweep)
    session.flush()
    known: dict[str, UUID] = {}
    if dedupe == "reuse":
        code_version = cells[0].code_version if cells else None
        known = runs.to_reuse(session, (cell.config_hash for cell in cells), code_version)
    fresh = [cell for cell in cells if cell.config_hash not in known]
    made = iter(runs.add_many(session, fresh, sweep_id=sweep.id, priority=priority, attempt_budget=attempt_budget))
    run_ids = [known[cell.config_hash] if cell.config_hash in known else next(made) for cell in cells]
    columns = {"sweep_id": "uuid", "position": "int4", "run_id": "uuid"}
    copy_rows(session, SweepRunRow.__tablename__, columns, ((sweep.id, place, id) for place, id in enumerate(run_ids)))
    sweep.reused = len(cells) - len(fresh)
    session.flush()
    session.refresh(sweep)
    return Added(sweep, run_ids)


def get(session: Session, sweep_id: UUID) -> SweepRow:
    """The sweep.

    Raises:
        NotFound: There is no such sweep.
    """
    sweep = session.get(SweepRow, sweep_id, populate_existing=True)
    if sweep is None:
        raise NotFound("sweep", sweep_id)
    return sweep


def page(session: Session, cursor: str | None = None, limit: int = 50) -> Page[SweepRow]:
    """Sweeps, newest first, after the cursor.

    Raises:
        BadCursor: The cursor was not made here.
    """
    wanted = select(SweepRow)
    if cursor is not None:
        wanted = wanted.where(tuple_(SweepRow.created_at, SweepRow.id) < tuple_(*cursors.decode(cursor)))
    wanted = wanted.order_by(SweepRow.created_at.desc(), SweepRow.id.desc()).limit(limit + 1)
    return cut(list(session.scalars(wanted)), limit)


def run_ids(session: Session, sweep_ids: Sequence[UUID]) -> dict[UUID, list[UUID]]:
    """The runs of each sweep, in the order of its cells."""
    found = session.execute(
        select(SweepRunRow.sweep_id, SweepRunRow.run_id)
        .where(SweepRunRow.sweep_id.in_(sweep_ids))
        .order_by(SweepRunRow.sweep_id, SweepRunRow.position)
    ).all()
    of_sweep: dict[UUID, list[UUID]] = {id: [] for id in sweep_ids}
    for sweep_id, run_id in found:
        of_sweep[sweep_id].append(run_id)
    return of_sweep


def counts(session: Session, sweep_ids: Sequence[UUID]) -> dict[UUID, dict[Status, int]]:
    """How many runs of each sweep are in each state; states without any are left out."""
    found = session.execute(
        select(SweepRunRow.sweep_id, RunRow.status, func.count())
        .join(RunRow, RunRow.id == SweepRunRow.run_id)
        .where(SweepRunRow.sweep_id.in_(sweep_ids))
        .group_by(SweepRunRow.sweep_id, RunRow.status)
    ).all()
    of_sweep: dict[UUID, dict[Status, int]] = {id: {} for id in sweep_ids}
    for sweep_id, status, number in found:
        of_sweep[sweep_id][status] = number
    return of_sweep


def cancel(session: Session, sweep_id: UUID) -> int:
    """Cancel every run that this sweep made and that has not ended; runs that it reuses go on.

    Returns:
        How many runs were cancelled or asked to stop.

    Raises:
        NotFound: There is no such sweep.
    """
    get(session, sweep_id)
    locked = session.scalars(
        select(RunRow.id)
        .where(RunRow.sweep_id == sweep_id, RunRow.status.not_in(TERMINAL))
        .order_by(RunRow.id)
        .with_for_update(key_share=True)
    ).all()
    ended = move_all(session, locked, Status.CANCELLED, among=sources(Status.CANCELLED) - LEASED)
    events.record_many(session, ended, "cancelled", "cancelled with its sweep")
    stopping = move_all(session, locked, Status.CANCELLING, among=sources(Status.CANCELLING))
    events.record_many(session, stopping, "cancel_requested", "asked with its sweep")
    return len(ended) + len(stopping)
