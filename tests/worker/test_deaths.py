"""Does a run survive whatever dies under it? Workers, servers and messages are killed, and it ends as it would have."""

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis

from deploy.local.servers import EmbeddedPostgres, EmbeddedRedis
from rotrnn_core.config import RunConfig
from rotrnn_core.records import Record
from store.migrate import migrate
from store.status import FailureClass, Outcome, Status
from worker import broker

pytestmark = pytest.mark.slow

Service = Any
Trained = Callable[[RunConfig], list[Record]]
Tiny = Callable[..., RunConfig]
LONG = 300


def test_sigterm_gives_the_run_back_with_a_checkpoint_and_uncharged(
    service: Service, trained: Trained, tiny: Tiny
) -> None:
    service.start_dispatcher()
    worker = service.start_worker()
    run_id = service.add(tiny(LONG))
    trainer = service.hold(run_id, 30)
    worker.send_signal(signal.SIGTERM)
    trainer.resume()
    assert worker.wait(60) == 0
    run = service.run(run_id)
    assert (run.status, run.attempts_charged) == (Status.QUEUED, 0)
    assert service.workers() == []
    service.only_left("dispatcher")
    service.start_worker()
    service.wait(run_id, Status.SUCCEEDED, within_s=180)
    first, second = service.attempts(run_id)
    assert first.outcome is Outcome.GAVE_BACK
    assert second.resumed_from_step == run.step >= 30
    service.holds_exactly(run_id, trained(tiny(LONG)))


@pytest.mark.parametrize("victim", ["the pool child", "the main process"])
def test_kill_9_of_a_worker_costs_no_step_and_leaves_no_orphan(
    service: Service, trained: Trained, tiny: Tiny, victim: str
) -> None:
    service.start_dispatcher()
    worker = service.start_worker()
    run_id = service.add(tiny(LONG))
    trainer = service.hold(run_id, 60)
    process = service.pool_child() if victim == "the pool child" else psutil.Process(worker.pid)
    process.kill()
    service.until(
        lambda: not trainer.is_running() or trainer.status() == psutil.STATUS_ZOMBIE, "end of the trainer", 60
    )
    if victim == "the main process":
        worker.wait()
        service.only_left("dispatcher")
        service.start_worker()
    service.wait(run_id, Status.SUCCEEDED, within_s=180)
    first, second = service.attempts(run_id)
    assert (first.outcome, first.failure_class) == (Outcome.FAILED, FailureClass.WORKER_LOST)
    assert second.resumed_from_step >= 50
    service.holds_exactly(run_id, trained(tiny(LONG)))


def test_an_emptied_redis_loses_no_run(service: Service) -> None:
    service.start_dispatcher()
    run_ids = [service.add({"task": {"name": "nonsense"}}, unchecked=True) for _ in range(3)]
    app = broker.make_app(service.broker_url)
    service.until(lambda: broker.waiting(app) == 3, "three hints")
    with redis.Redis.from_url(service.broker_url) as connection:
        connection.flushall()
    service.start_worker()
    for run_id in run_ids:
        assert service.wait(run_id, Status.FAILED).failure_class is FailureClass.BAD_CONFIG


def test_a_worker_goes_on_after_redis_was_away(
    service: Service, redis_server: EmbeddedRedis, trained: Trained, tiny: Tiny
) -> None:
    service.start_dispatcher()
    service.start_worker()
    first = service.add(tiny(LONG))
    trainer = service.hold(first, 1)
    redis_server.stop()
    second = service.add(tiny(10))
    trainer.resume()
    time.sleep(3)
    redis_server.start()
    for run_id in (first, second):
        service.wait(run_id, Status.SUCCEEDED, within_s=180)
        assert service.run(run_id).attempt == 1
    service.holds_exactly(first, trained(tiny(LONG)))


@pytest.fixture
def mortal(
    tmp_path: Path, redis_url: str, data_dir: Path, open_service: Callable[..., Any]
) -> Iterator[tuple[Service, EmbeddedPostgres]]:
    """A service whose Postgres is its own, to be stopped and started."""
    with EmbeddedPostgres(tmp_path / "postgres", durable=False) as postgres:
        migrate(postgres.url)
        with open_service(postgres.url, redis_url, tmp_path, data_dir) as made:
            yield made, postgres


def test_training_goes_on_while_postgres_is_away_and_every_record_arrives_once(
    mortal: tuple[Service, EmbeddedPostgres], trained: Trained, tiny: Tiny
) -> None:
    service, postgres = mortal
    service.start_dispatcher(ROTBENCH_LEASE_S="8")
    service.start_worker(ROTBENCH_LEASE_S="8")
    run_id = service.add(tiny(LONG))
    trainer = service.hold(run_id, 10)
    postgres.stop()
    trainer.resume()
    away_since = time.monotonic()
    (spool,) = (service.folder / "spool").glob("*.jsonl")
    service.until(lambda: '"record":"Finished"' in spool.read_text(), "the end of training in the spool", 120)
    time.sleep(max(0.0, 10 - (time.monotonic() - away_since)))
    postgres.start()
    service.wait(run_id, Status.SUCCEEDED, within_s=60)
    service.holds_exactly(run_id, trained(tiny(LONG)))
    assert service.run(run_id).attempt == 1, "an outage longer than a lease costs no attempt"
    assert not spool.exists()
