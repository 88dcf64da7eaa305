"""Can a worker that stands still hold up the others?"""

import time
from collections.abc import Callable
from uuid import UUID

import pytest
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from store import leases, runs
from store.engine import session_factory
from store.status import Status
from worker.database import worker_engine
from worker.delivery import is_away
from worker.settings import WorkerSettings


def test_a_worker_that_stands_still_inside_a_transaction_loses_its_lease_all_the_same(
    database_url: str, session: Session, queue_run: Callable[..., UUID]
) -> None:
    run_id = queue_run(session)
    engine = worker_engine(WorkerSettings(database_url=database_url, lease_s=0.5), "w")
    with session_factory(engine)() as writing:
        claim = runs.claim(writing, run_id, worker_id="w", lease_s=0.5, host="h", device="cpu")
        assert claim is not None
        writing.commit()
        leases.fence(writing, run_id, claim.attempt, claim.token)

        def reaped() -> list[UUID]:
            lost = runs.reap(session)
            session.commit()
            return lost

        deadline = time.monotonic() + 20
        while not (lost := reaped()) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert lost == [run_id]
        session.expire_all()
        assert runs.get(session, run_id).status is Status.QUEUED
        with pytest.raises(DBAPIError) as caught:
            leases.fence(writing, run_id, claim.attempt, claim.token)
        assert is_away(caught.value)
    engine.dispose()
