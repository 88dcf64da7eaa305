"""How is the database kept small? Runs that ended long ago are counted, and deleted when that was what one wanted."""

from datetime import timedelta
from typing import Literal

from fastapi import APIRouter
from pydantic import Field

from api.documentation import problems
from api.schemas import Order, Wire
from api.sessions import FactoryDep
from store import retention, runs
from store.errors import IllegalMove, NotFound
from store.status import Status

router = APIRouter(prefix="/v1/gc", tags=["runs"])

MOST_RUNS = 100


Ended = Literal["succeeded", "diverged", "failed", "cancelled"]


class Purge(Order):
    """Which runs to delete."""

    older_than_days: float = Field(30.0, ge=0, le=36_500, description="Runs that ended longer ago than this.")
    status: list[Ended] = Field(["failed", "cancelled"], min_length=1, description="States that nobody keeps.")
    dry_run: bool = Field(True, description="Count only; nothing is deleted.")


class PurgeRead(Wire):
    """What was deleted, or with dry_run what would be."""

    dry_run: bool
    runs: int
    more: bool = Field(description=f"Whether further runs wait; one request takes at most {MOST_RUNS}.")
    points: int
    trace_rows: int
    log_lines: int
    checkpoints: int
    checkpoint_bytes: int = Field(description="On the workers' disks, which remove them by themselves.")


@router.post("", responses=problems(400, 401, 413), summary="Delete runs that ended long ago")
def collect_garbage(wanted: Purge, sessions: FactoryDep) -> PurgeRead:
    """Count the runs that ended in these states so long ago, and unless it is a dry run delete them one by one."""
    older_than_s = timedelta(days=wanted.older_than_days).total_seconds()
    statuses = [Status(status) for status in wanted.status]
    with sessions() as session:
        found = retention.ended_long_ago(session, statuses, older_than_s, MOST_RUNS + 1)
        chosen = found[:MOST_RUNS]
        weight = retention.weigh(session, chosen)
    number = len(chosen) if wanted.dry_run else 0
    for run_id in [] if wanted.dry_run else chosen:
        with sessions() as session:
            try:
                runs.delete(session, run_id)
            except (NotFound, IllegalMove):  # deleted or resumed meanwhile
                continue
            session.commit()
            number += 1
    return PurgeRead(dry_run=wanted.dry_run, runs=number, more=len(found) > MOST_RUNS, **vars(weight))
