"""Which workers are there, and when were they last heard of?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from uuid import UUID

from sqlalchemy import case, delete, exists, extract, func, literal, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session, aliased

from store.errors import DeviceTaken
from store.plain_text import storable
from store.tables import WorkerRow


@dataclass(frozen=True)
class Memory:
    """In MiB: what a worker's processes hold, and what its host has in all and to spare."""

    resident_mib: int
    host_total_mib: int
    host_available_mib: int


MEMORY = tuple(field.name for field in fields(Memory))


@dataclass(frozen=True)
class Heard:
    """A worker and the age of its last beat by the database's clock."""

    worker: WorkerRow
    beat_age_s: float


def beat(
    session: Session,
    worker_id: str,
    *,
    host: str,
    device: str,
    device_uuid: str,
    pid: int,
    environment: Mapping[str, str],
    run_id: UUID | None = None,
    data: Sequence[str] = (),
    memory: Memory | None = None,
    stale_s: float = 60.0,
) -> None:
    """Say that a worker lives and holds its device; a process of the same name and host replaces the one before.

    Args:
        device_uuid: The GPU's UUID; for a CPU worker the name of its slot on its host.
        run_id: What it works on; None when idle.
        data: Names of the published data that are at hand there.
        memory: None where the system does not say.
        stale_s: A holder that has not beaten for so long is gone, and its device free.

    Raises:
        DeviceTaken: Another worker holds the device, or one on another host bears this name, and is not gone.
    """
    gone = WorkerRow.beat_at < func.clock_timestamp() - literal(stale_s) * text("interval '1 second'")
    other = WorkerRow.id != worker_id
    session.execute(delete(WorkerRow).where(WorkerRow.device_uuid == device_uuid, other, gone))
    same = (WorkerRow.pid == pid) & (WorkerRow.host == host)
    facts = {
        "host": host,
        "device": device,
        "device_uuid": device_uuid,
        "pid": pid,
        "environment": {storable(key): storable(value) for key, value in environment.items()},
        "run_id": run_id,
        "data": list(data),
        **{name: getattr(memory, name, None) for name in MEMORY},
    }
    holder = aliased(WorkerRow)
    elsewhere = exists().where(holder.device_uuid == device_uuid, holder.id != worker_id)
    beaten = session.scalar(
        update(WorkerRow)
        .where(WorkerRow.id == worker_id, (WorkerRow.host == host) | gone, ~elsewhere)
        .values(
            beat_at=func.clock_timestamp(),
            started_at=case((same, WorkerRow.started_at), else_=func.clock_timestamp()),
            **facts,
        )
        .returning(WorkerRow.id),
        execution_options={"synchronize_session": False},
    ) or session.scalar(
        insert(WorkerRow).values(id=worker_id, **facts).on_conflict_do_nothing().returning(WorkerRow.id)
    )
    if beaten is None:
        raise _taken(session, worker_id, device_uuid)


def forget(session: Session, worker_id: str, pid: int) -> None:
    """Free the device of a worker process that ends, unless a new one has replaced it."""
    session.execute(delete(WorkerRow).where(WorkerRow.id == worker_id, WorkerRow.pid == pid))


def read(session: Session) -> list[Heard]:
    """Every worker, by host and name."""
    age = extract("epoch", func.clock_timestamp() - WorkerRow.beat_at)
    found = session.execute(
        select(WorkerRow, age.label("age"))
        .order_by(WorkerRow.host, WorkerRow.id)
        .execution_options(populate_existing=True)
    ).all()
    return [Heard(worker, float(seconds)) for worker, seconds in found]


def _taken(session: Session, worker_id: str, device_uuid: str) -> DeviceTaken:
    age = extract("epoch", func.clock_timestamp() - WorkerRow.beat_at)
    holder, age_s = session.execute(
        select(WorkerRow, age)
        .where((WorkerRow.device_uuid == device_uuid) | (WorkerRow.id == worker_id))
        .order_by(WorkerRow.device_uuid != device_uuid)
        .limit(1)
        .execution_options(populate_existing=True)
    ).one()
    return DeviceTaken(device_uuid, holder.id, holder.host, holder.pid, float(age_s))
