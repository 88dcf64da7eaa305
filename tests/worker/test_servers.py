"""Does a run survive servers that restart at the narrow moments, or that say nothing? Postgres and Redis of its own."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from deploy.local.servers import EmbeddedPostgres, EmbeddedRedis
from rotrnn_core.config import RunConfig
from rotrnn_core.records import Record
from store.migrate import migrate
from store.status import Status

pytestmark = pytest.mark.slow

Service = Any
Trained = Callable[[RunConfig], list[Record]]


@pytest.fixture
def mortal(
    tmp_path: Path, data_dir: Path, open_service: Callable[..., AbstractContextManager[Service]]
) -> Iterator[tuple[Service, EmbeddedPostgres, EmbeddedRedis]]:
    """A service with a dispatcher and a worker, whose servers are its own."""
    with ExitStack() as stack:
        postgres = stack.enter_context(EmbeddedPostgres(tmp_path / "postgres", durable=False))
        redis = stack.enter_context(EmbeddedRedis(tmp_path / "redis"))
        migrate(postgres.url)
        service = stack.enter_context(open_service(postgres.url, redis.url, tmp_path, data_dir))
        service.start_dispatcher(ROTBENCH_LEASE_S="8")
        service.start_worker(ROTBENCH_LEASE_S="8")
        yield service, postgres, redis


def test_servers_that_restart_or_fall_silent_at_each_moment_cost_no_attempt(
    mortal: tuple[Service, EmbeddedPostgres, EmbeddedRedis], trained: Trained, tiny: Callable[..., RunConfig]
) -> None:
    service, postgres, redis = mortal
    config = tiny(12, checkpoint_every=5, evaluate_every=6)
    assert redis.process is not None
    broker = psutil.Process(redis.process.pid)
    first = service.add(config)
    for moment in (".jsonl.new", "trainer", ".partial"):
        with service.held(moment):
            postgres.stop()
            postgres.start()
    service.until(lambda: service.run(first).step >= 10, "ten steps")
    broker.suspend()
    second = service.add(config)
    service.wait(first, Status.SUCCEEDED, within_s=180)
    broker.resume()
    service.wait(second, Status.SUCCEEDED, within_s=180)
    for run_id in (first, second):
        service.holds_exactly(run_id, trained(config))
        service.keeps_its_promises(run_id)
        assert service.run(run_id).attempt == 1
