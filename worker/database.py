"""How does a worker reach the database? A worker that stands still holds nobody up for longer than its lease."""

from sqlalchemy import Engine

from store.engine import limits_within, make_engine
from worker.settings import WorkerSettings


def worker_engine(settings: WorkerSettings, worker_id: str) -> Engine:
    """An engine whose statements and pauses within a transaction end well before a lease does.

    A process that is stopped inside a transaction keeps its row locks until the server ends its session; while they
    last, the reaper cannot take the run.
    """
    return make_engine(
        settings.database_url.get_secret_value(),
        application_name=f"rotbench worker {worker_id}",
        pool_size=2,
        **limits_within(settings.lease_s),
    )
