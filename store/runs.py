"""Which runs are there? Submit, find, list, count and delete them; their lives are led in leases and requests."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb
from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Table,
    Text,
    Uuid,
    any_,
    bindparam,
    case,
    func,
    insert,
    literal,
    select,
    text,
    tuple_,
)
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session, aliased

from store import cursors, events
from store.copying import copy_rows
from store.cursors import Page, cut
from store.errors import IllegalMove, NotFound
from store.leases import Beat, Claim, beat, claim, finish, give_back, is_held_by, reap
from store.requests import request_cancel, request_pause, resume
from store.status import TERMINAL, Priority, Status
from store.tables import DeletedRunRow, EventRow, OutboxRow, RunRow, SweepRunRow
from store.transitions import locked

__all__ = [
    "Beat",
    "Claim",
    "Filters",
    "NewRun",
    "add",
    "add_many",
    "beat",
    "claim",
    "comparable",
    "confusions",
    "counts",
    "delete",
    "finish",
    "get",
    "give_back",
    "is_held_by",
    "of_ids",
    "page",
    "reap",
    "request_cancel",
    "request_pause",
    "resume",
    "reusable",
]

_REUSE_LOCK = 0x726F7462
_REUSABLE = (Status.SUCCEEDED, Status.DIVERGED, Status.RUNNING, Status.QUEUED, Status.PAUSED)
"""States of a run that fills, or will fill, a cell with the same configuration; best first."""

_COMPARABLE = (Status.SUCCEEDED, Status.DIVERGED, Status.RUNNING, Status.PAUSED, Status.CANCELLING)
"""States of a run whose numbers may stand in a comparison."""

_COLUMNS = {
    "id": "uuid",
    "name": "text",
    "sweep_id": "uuid",
    "config": "jsonb",
    "config_hash": "text",
    "cell": "text",
    "task": "text",
    "depth": "int4",
    "seed": "int8",
    "total_steps": "int4",
    "priority": "int2",
    "attempt_budget": "int4",
    "code_version": "text",
    "needs_data": "text",
}


@dataclass(frozen=True)
class NewRun:
    """A run to be added; `config` is complete and checked, `code_version` names the code that is to train it.

    `needs_data` names the published data that its worker must have; None where its examples are made.
    """

    config: Mapping[str, Any]
    config_hash: str
    cell: str
    task: str
    depth: int
    seed: int
    total_steps: int
    name: str | None = None
    code_version: str | None = None
    needs_data: str | None = None


@dataclass(frozen=True)
class Filters:
    """Which runs to show: each field lists the values allowed; an empty one allows all."""

    status: Sequence[Status] = ()
    cell: Sequence[str] = ()
    task: Sequence[str] = ()
    depth: Sequence[int] = ()
    seed: Sequence[int] = ()
    sweep_id: UUID | None = None
    run_id: UUID | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """The filters as conditions on RunRow; runs that a sweep reuses belong to it too."""
        lists = {
            RunRow.status: self.status,
            RunRow.cell: self.cell,
            RunRow.task: self.task,
            RunRow.depth: self.depth,
            RunRow.seed: self.seed,
        }
        wanted: list[ColumnElement[bool]] = [column.in_(values) for column, values in lists.items() if values]
        if self.run_id is not None:
            wanted.append(RunRow.id == self.run_id)
        if self.sweep_id is not None:
            wanted.append(RunRow.id.in_(select(SweepRunRow.run_id).where(SweepRunRow.sweep_id == self.sweep_id)))
        return wanted


_runs, _hints, _events = (cast(Table, row.__table__) for row in (RunRow, OutboxRow, EventRow))
_run = insert(_runs).values({name: bindparam(name) for name in _COLUMNS}).returning(*_runs.columns).cte("run")
_hint = insert(_hints).from_select(["run_id", "priority"], select(_run.c.id, _run.c.priority))
_event = insert(_events).from_select(
    ["run_id", "kind", "attempt", "message"], select(_run.c.id, literal("submitted"), _run.c.attempt, literal("queued"))
)
_ADD = select(aliased(RunRow, _run)).add_cte(_hint.cte("hint"), _event.cte("event"))
"""A run with its hint and its first event, and what has become of it; written once, since each submission sends it."""


def add(
    session: Session,
    *,
    config: Mapping[str, Any],
    config_hash: str,
    cell: str,
    task: str,
    depth: int,
    seed: int,
    total_steps: int,
    name: str | None = None,
    sweep_id: UUID | None = None,
    priority: int = Priority.NORMAL,
    attempt_budget: int = 3,
    code_version: str | None = None,
    needs_data: str | None = None,
    id: UUID | None = None,
) -> RunRow:
    """Queue a run, with its outbox row, by one statement; its id may be given."""
    new = {
        "id": id or uuid4(),
        "config": dict(config),
        "config_hash": config_hash,
        "cell": cell,
        "task": task,
        "depth": depth,
        "seed": seed,
        "total_steps": total_steps,
        "name": name,
        "sweep_id": sweep_id,
        "priority": int(priority),
        "attempt_budget": attempt_budget,
        "code_version": code_version,
        "needs_data": needs_data,
    }
    return session.scalars(_ADD, new).one()


def add_many(
    session: Session,
    new_runs: Sequence[NewRun],
    *,
    sweep_id: UUID | None = None,
    priority: int = Priority.NORMAL,
    attempt_budget: int = 3,
) -> list[UUID]:
    """Queue many runs, with their outbox rows, by a fixed number of statements; ids in the order given."""
    ids = [uuid4() for _ in new_runs]
    written: dict[int, tuple[Any, str]] = {}
    copy_rows(
        session,
        RunRow.__tablename__,
        _COLUMNS,
        (
            (
                id,
                new.name,
                sweep_id,
                _as_json(new.config, written),
                new.config_hash,
                new.cell,
                new.task,
                new.depth,
                new.seed,
                new.total_steps,
                int(priority),
                attempt_budget,
                new.code_version,
                new.needs_data,
            )
            for id, new in zip(ids, new_runs, strict=True)
        ),
    )
    copy_rows(
        session, OutboxRow.__tablename__, {"run_id": "uuid", "priority": "int2"}, ((id, int(priority)) for id in ids)
    )
    events.record_many(session, ids, "submitted", "queued")
    return ids


def _as_json(config: Mapping[str, Any], written: dict[int, tuple[Any, str]]) -> Jsonb:
    """A configuration as JSON; a part that many runs share is written out once, kept and known by its identity."""
    members = []
    for name, part in config.items():
        if id(part) not in written:
            written[id(part)] = part, json.dumps(part, allow_nan=False)
        members.append(f"{json.dumps(name)}:{written[id(part)][1]}")
    return Jsonb(f"{{{','.join(members)}}}", dumps=str)


def get(session: Session, run_id: UUID) -> RunRow:
    """The run as it is now.

    Raises:
        NotFound: There is no such run.
    """
    run = session.get(RunRow, run_id, populate_existing=True)
    if run is None:
        raise NotFound("run", run_id)
    return run


def of_ids(session: Session, run_ids: Sequence[UUID]) -> list[RunRow]:
    """Those of the runs that there are, in no order."""
    wanted = select(RunRow).where(RunRow.id == any_(literal(list(run_ids), ARRAY(Uuid))))
    return list(session.scalars(wanted.execution_options(populate_existing=True)))


def confusions(session: Session, run_ids: Sequence[UUID]) -> dict[UUID, list[Any]]:
    """What each tested network took each class for; runs without are left out."""
    wanted = select(RunRow.id, RunRow.confusion).where(
        RunRow.id == any_(literal(list(run_ids), ARRAY(Uuid))), RunRow.confusion.is_not(None)
    )
    return {row[0]: row[1] for row in session.execute(wanted)}


def page(session: Session, filters: Filters, cursor: str | None = None, limit: int = 50) -> Page[RunRow]:
    """Runs that pass the filters, newest first, after the cursor.

    Raises:
        BadCursor: The cursor was not made here.
    """
    wanted = select(RunRow).where(*filters.conditions())
    if cursor is not None:
        wanted = wanted.where(tuple_(RunRow.created_at, RunRow.id) < tuple_(*cursors.decode(cursor)))
    wanted = wanted.order_by(RunRow.created_at.desc(), RunRow.id.desc()).limit(limit + 1)
    return cut(list(session.scalars(wanted.execution_options(populate_existing=True))), limit)


def counts(session: Session) -> dict[Status, int]:
    """How many runs there are in each state; states without any are 0."""
    found = session.execute(select(RunRow.status, func.count().label("number")).group_by(RunRow.status)).all()
    return dict.fromkeys(Status, 0) | {row.status: row.number for row in found}


def comparable(session: Session, filters: Filters) -> list[RunRow]:
    """Runs whose numbers may be compared: begun, not failed or cancelled, and the newest of each configuration."""
    newest = (
        select(RunRow.id)
        .where(RunRow.status.in_(_COMPARABLE), RunRow.attempt > 0, *filters.conditions())
        .ext(distinct_on(RunRow.config_hash))
        .order_by(RunRow.config_hash, RunRow.created_at.desc(), RunRow.id.desc())
    )
    return list(
        session.scalars(
            select(RunRow)
            .where(RunRow.id.in_(newest))
            .order_by(RunRow.task, RunRow.cell, RunRow.depth, RunRow.seed, RunRow.id)
            .execution_options(populate_existing=True)
        )
    )


def to_reuse(session: Session, config_hashes: Iterable[str], code_version: str | None = None) -> dict[str, UUID]:
    """As `reusable`; until this transaction ends, who else asks to reuse runs waits for those that it makes itself."""
    session.execute(select(func.pg_advisory_xact_lock(_REUSE_LOCK)))
    return reusable(session, config_hashes, code_version)


def reusable(session: Session, config_hashes: Iterable[str], code_version: str | None = None) -> dict[str, UUID]:
    """The run that fills, or will fill, the place of each configuration that has one: finished first, then newest.

    Args:
        code_version: Only runs of this code; None stands for code of no known version.
    """
    rank = case({status: place for place, status in enumerate(_REUSABLE)}, value=RunRow.status)
    found = session.execute(
        select(RunRow.config_hash, RunRow.id)
        .where(RunRow.config_hash == any_(literal(list(set(config_hashes)), ARRAY(Text))), RunRow.status.in_(_REUSABLE))
        .where(RunRow.code_version.is_not_distinct_from(code_version))
        .ext(distinct_on(RunRow.config_hash))
        .order_by(RunRow.config_hash, rank, RunRow.created_at.desc(), RunRow.id.desc())
    ).all()
    return {row.config_hash: row.id for row in found}


def delete(session: Session, run_id: UUID, *, batch: int = 50_000) -> None:
    """Delete an ended run and all that was recorded of it, in batches so that no statement is long.

    Its files are removed by the workers, which ask `deletions` for it.

    Raises:
        NotFound: There is no such run.
        IllegalMove: The run has not ended.
    """
    run = locked(session, run_id)
    if run.status not in TERMINAL:
        raise IllegalMove(run.id, run.status, "deleted")
    for table in ("metrics", "metric_blocks", "hidden_norms", "logs"):
        some = text(
            f"DELETE FROM {table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {table} WHERE run_id = :run_id LIMIT :batch))"
        )
        while session.connection().execute(some, {"run_id": run_id, "batch": batch}).rowcount == batch:
            pass
    session.delete(run)
    session.add(DeletedRunRow(run_id=run_id))
    session.flush()
