"""Which queued runs wait for published data that no worker has, what is said of them, and when is it given up?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import ARRAY, Uuid, any_, func, literal, select, text
from sqlalchemy.orm import Session

from store import events
from store.status import FailureClass, Status
from store.tables import RunRow, WorkerRow
from store.transitions import move


@dataclass(frozen=True)
class Stock:
    """The published data that living workers have, and where one of them looks for data: a host and a folder."""

    names: frozenset[str]
    host: str
    data_dir: str | None

    def words(self, data: str) -> str:
        """Why a run waits that needs data which are not in stock, and what mends it."""
        where = "" if self.data_dir is None else f" --data-dir {self.data_dir}"
        return (
            f"no worker has the data of {data}: run `rotbench data fetch {data}{where}`, or `rotbench data import "
            f"{data} PATH{where}` on a copy of the official files, on the machine of a worker, such as {self.host}"
        )


def stock(session: Session, lease_s: float) -> Stock | None:
    """What living workers have; None while no worker lives, and nothing is known.

    Args:
        lease_s: A worker lives that has beaten within so long.
    """
    ago = func.clock_timestamp() - literal(lease_s) * text("interval '1 second'")
    living = session.execute(
        select(WorkerRow.data, WorkerRow.host, WorkerRow.environment)
        .where(WorkerRow.beat_at >= ago)
        .order_by(WorkerRow.id)
    ).all()
    if not living:
        return None
    names = frozenset(name for worker in living for name in worker.data)
    return Stock(names, living[0].host, living[0].environment.get("data_dir"))


def needed(session: Session) -> frozenset[str]:
    """The published data that runs need which wait in the queue."""
    wanted = select(RunRow.needs_data).where(RunRow.status == Status.QUEUED, RunRow.needs_data.is_not(None))
    return frozenset(name for name in session.scalars(wanted.distinct()) if name is not None)


def reasons(session: Session, runs: Sequence[RunRow], lease_s: float) -> dict[UUID, str]:
    """Those of the runs that wait for data which no living worker has, each with why."""
    waiting = {run.id: run.needs_data for run in runs if run.status is Status.QUEUED and run.needs_data is not None}
    there = stock(session, lease_s) if waiting else None
    if there is None:
        return {}
    return {run_id: there.words(name) for run_id, name in waiting.items() if name not in there.names}


def tell(session: Session, waiting: Mapping[UUID, str], there: Stock) -> None:
    """Write into the history of each run that it waits for the data named; a run that somebody else holds is left out.

    Nobody is waited for: the caller holds rows of the outbox, which whoever deletes a run takes after the run.
    """
    free = session.scalars(
        select(RunRow.id)
        .where(RunRow.id == any_(literal(list(waiting), ARRAY(Uuid))), RunRow.status == Status.QUEUED)
        .with_for_update(key_share=True, skip_locked=True)
    ).all()
    for name in sorted(set(waiting.values())):
        events.record_many(session, [run_id for run_id in free if waiting[run_id] == name], "waits", there.words(name))


def give_up(session: Session, data: str, there: Stock, after_s: float, limit: int = 100) -> list[UUID]:
    """End runs as failed, class data_missing, that have waited for these data long enough; no attempt is charged.

    Args:
        data: What no worker has.
        there: What workers have.
        after_s: So long a run has to have been in the queue.
        limit: At most so many runs.

    Returns:
        The runs that ended.
    """
    long_ago = func.clock_timestamp() - literal(after_s) * text("interval '1 second'")
    runs = session.scalars(
        select(RunRow)
        .where(RunRow.status == Status.QUEUED, RunRow.needs_data == data, RunRow.queued_at <= long_ago)
        .order_by(RunRow.queued_at)
        .limit(limit)
        .with_for_update(key_share=True, skip_locked=True)
        .execution_options(populate_existing=True)
    ).all()
    for run in runs:
        reason = f"{there.words(data)}; then resume the run"
        move(run, Status.FAILED)
        run.failure_class, run.reason = FailureClass.DATA_MISSING, reason
        events.record(session, run, "failed", f"{FailureClass.DATA_MISSING}: {reason}")
    session.flush()
    return [run.id for run in runs]
