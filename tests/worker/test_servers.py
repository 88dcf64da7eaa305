"""Does a run survive servers that restart, fall silent, stay away or forget? Postgres and Redis of its own."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import psutil
import pytest
import redis
from service import Service

from deploy.local.servers import EmbeddedPostgres, EmbeddedRedis
from rotrnn_core.config import RunConfig
from rotrnn_core.records import Record
from store.migrate import migrate
from store.status import FailureClass, Status
from worker import broker

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("servers")]

Mortal = tuple[Service, EmbeddedPostgres, EmbeddedRedis]
Trained = Callable[[RunConfig], list[Record]]
Tiny = Callable[..., RunConfig]
LEASE_S = 6
LONG = 300


@pytest.fixture(scope="module")
def mortal(
    tmp_path_factory: pytest.TempPathFactory,
    data_dir: Path,
    open_service: Callable[..., AbstractContextManager[Service]],
) -> Iterator[Mortal]:
    """A service with a dispatcher and a worker, whose servers are its own, to be stopped and started."""
    folder = tmp_path_factory.mktemp("mortal")
    with ExitStack() as stack:
        postgres = stack.enter_context(EmbeddedPostgres(folder / "postgres", durable=False))
        redis_server = stack.enter_context(EmbeddedRedis(folder / "redis"))
        migrate(postgres.url)
        service = stack.enter_context(open_service(postgres.url, redis_server.url, folder, data_dir))
        service.start_dispatcher(ROTBENCH_LEASE_S=str(LEASE_S))
        service.start_worker(ROTBENCH_LEASE_S=str(LEASE_S))
        yield service, postgres, redis_server


def test_servers_that_restart_or_fall_silent_at_each_moment_cost_no_attempt(
    mortal: Mortal, trained: Trained, tiny: Tiny
) -> None:
    service, postgres, redis_server = mortal
    config = tiny(12, checkpoint_every=5, evaluate_every=6)
    assert redis_server.process is not None
    silent = psutil.Process(redis_server.process.pid)
    first = service.add(config)
    for moment in (".jsonl.new", "trainer", ".partial"):
        with service.held(moment):
            postgres.stop()
            postgres.start()
    service.until(lambda: service.run(first).step >= 10, "ten steps")
    silent.suspend()
    second = service.add(config)
    service.wait(first, Status.SUCCEEDED, within_s=180)
    silent.resume()
    service.wait(second, Status.SUCCEEDED, within_s=180)
    for run_id in (first, second):
        service.holds_exactly(run_id, trained(config))
        service.keeps_its_promises(run_id)
        assert service.run(run_id).attempt == 1


def test_training_goes_on_while_postgres_is_away_and_every_record_arrives_once(
    mortal: Mortal, trained: Trained, tiny: Tiny
) -> None:
    service, postgres, _ = mortal
    run_id = service.add(tiny(LONG))
    trainer = service.hold(run_id, 10)
    postgres.stop()
    trainer.resume()
    away_since = time.monotonic()
    (spool,) = (service.folder / "spool").glob("*.jsonl")
    service.until(lambda: '"record":"Finished"' in spool.read_text(), "the end of training in the spool", 120)
    time.sleep(max(0.0, LEASE_S + 1 - (time.monotonic() - away_since)))
    postgres.start()
    service.wait(run_id, Status.SUCCEEDED, within_s=60)
    service.holds_exactly(run_id, trained(tiny(LONG)))
    assert service.run(run_id).attempt == 1, "an outage longer than a lease costs no attempt"
    assert not spool.exists()


def test_a_redis_that_forgets_and_goes_away_loses_no_run_and_no_worker(
    mortal: Mortal, trained: Trained, tiny: Tiny
) -> None:
    service, _, redis_server = mortal
    trains = service.add(tiny(LONG))
    trainer = service.hold(trains, 1)
    wait = [service.add({"task": {"name": "nonsense"}}, unchecked=True) for _ in range(3)]
    app = broker.make_app(service.broker_url)
    service.until(lambda: broker.waiting(app) == 3, "three hints")
    with redis.Redis.from_url(service.broker_url) as connection:
        connection.flushall()
    redis_server.stop()
    wait.append(service.add({"task": {"name": "nonsense"}}, unchecked=True))
    trainer.resume()
    time.sleep(3)
    redis_server.start()
    for run_id in wait:
        assert service.wait(run_id, Status.FAILED, within_s=120).failure_class is FailureClass.BAD_CONFIG
    service.wait(trains, Status.SUCCEEDED, within_s=180)
    assert {service.run(run_id).attempt for run_id in (trains, *wait)} == {1}
    service.holds_exactly(trains, trained(tiny(LONG)))
