"""Does the dispatcher hand out what waits, again what was lost, and take back only what is dead?"""

import base64
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import redis
from sqlalchemy import Engine
from structlog.testing import capture_logs

from deploy.local.servers import EmbeddedRedis
from store import runs
from store.engine import session_factory
from store.status import Priority, Status
from worker import broker
from worker.dispatcher import Dispatcher, Duty, Witness
from worker.settings import DispatcherSettings

ROOT = Path(__file__).parents[2]
Queue = Callable[..., UUID]


@pytest.fixture
def settings(database_url: str, redis_url: str) -> DispatcherSettings:
    return DispatcherSettings(database_url=database_url, broker_url=redis_url, sweep_after_s=0.01, lease_s=0.4)


@pytest.fixture
def dispatcher(settings: DispatcherSettings, engine: Engine) -> Dispatcher:
    app = broker.make_app(settings.broker_url.get_secret_value())
    return Dispatcher(settings, app, session_factory(engine))


@pytest.fixture
def connection(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url, decode_responses=True) as opened:
        yield opened


@pytest.fixture
def queue(engine: Engine, queue_run: Queue) -> Queue:
    def add(**fields: Any) -> UUID:
        with session_factory(engine)() as session:
            return queue_run(session, **fields)

    return add


def served(connection: redis.Redis) -> list[str]:
    """The arguments of every waiting message, in the order in which a worker takes them."""
    keys = ["rotbench", "rotbench\x06\x161", "rotbench\x06\x162"]
    waiting = [json.loads(message) for key in keys for message in reversed(connection.lrange(key, 0, -1))]
    assert {message["content-type"] for message in waiting} <= {"application/json"}
    return [json.loads(base64.b64decode(message["body"]))[0] for message in waiting]


def test_a_message_carries_nothing_but_the_runs_id_and_the_high_ones_come_first(
    dispatcher: Dispatcher, queue: Queue, connection: redis.Redis
) -> None:
    low, normal, high = (queue(priority=priority) for priority in (Priority.LOW, Priority.NORMAL, Priority.HIGH))
    dispatcher.dispatch()
    assert served(connection) == [[str(high)], [str(normal)], [str(low)]]


def test_each_hint_is_published_once(dispatcher: Dispatcher, queue: Queue) -> None:
    for _ in range(250):
        queue()
    dispatcher.dispatch()
    dispatcher.dispatch()
    assert broker.waiting(dispatcher.app) == 250


def test_two_dispatchers_share_the_work(dispatcher: Dispatcher, queue: Queue) -> None:
    for _ in range(120):
        queue()
    both = [threading.Thread(target=dispatcher.dispatch) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert broker.waiting(dispatcher.app) == 120


def test_a_redis_that_is_away_leaves_the_hints_for_later(
    dispatcher: Dispatcher, queue: Queue, redis_server: EmbeddedRedis
) -> None:
    queue()
    redis_server.stop()
    with pytest.raises(broker.BrokerAway):
        dispatcher.dispatch()
    with pytest.raises(broker.BrokerAway):
        broker.waiting(dispatcher.app)
    redis_server.start()
    dispatcher.dispatch()
    assert broker.waiting(dispatcher.app) == 1


def test_lost_hints_are_published_again_and_others_are_not(
    dispatcher: Dispatcher, queue: Queue, connection: redis.Redis
) -> None:
    run_ids = [queue() for _ in range(3)]
    dispatcher.dispatch()
    for _ in range(3):
        time.sleep(0.02)
        dispatcher.sweep()
        dispatcher.dispatch()
    assert len(served(connection)) == 3, "what waits in the broker is not lost"
    connection.flushall()
    for _ in range(2):
        dispatcher.sweep()
        dispatcher.dispatch()
    assert sorted(served(connection)) == sorted([[str(run_id)] for run_id in run_ids])


def test_a_lost_lease_is_taken_only_by_one_who_saw_the_database_for_a_lease(
    dispatcher: Dispatcher, queue: Queue, engine: Engine
) -> None:
    run_id = queue()
    with session_factory(engine).begin() as session:
        assert runs.claim(session, run_id, worker_id="dead", lease_s=0.0, host="h", device="cpu:0")

    def status() -> Status:
        with session_factory(engine)() as session:
            return runs.get(session, run_id).status

    began = time.monotonic()
    while status() is Status.RUNNING:
        dispatcher.reap()
        time.sleep(0.02)
    assert time.monotonic() - began >= 0.4


def test_a_witness_judges_after_a_lease_without_a_gap() -> None:
    clock = [0.0]
    witness = Witness(lease_s=60, clock=lambda: clock[0])
    judged = []
    for pause in [5] * 13 + [16] + [5] * 13:
        witness.saw()
        judged.append(witness.may_judge)
        clock[0] += pause
    one_lease = [False] * 12 + [True]
    assert judged == [*one_lease, True, *one_lease], "a gap of more than a quarter of a lease begins it anew"


def test_the_first_look_after_an_outage_takes_no_lease(
    dispatcher: Dispatcher, queue: Queue, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(dispatcher, "_witness", Witness(lease_s=60, clock=lambda: clock[0]))

    def look(pause_s: float) -> Status:
        clock[0] += pause_s
        dispatcher.reap()
        with session_factory(engine)() as session:
            return runs.get(session, run_id).status

    run_id = queue()
    for _ in range(20):
        look(5)
    with session_factory(engine).begin() as session:
        assert runs.claim(session, run_id, worker_id="w", lease_s=0.0, host="h", device="cpu:0")
    assert look(61) is Status.RUNNING, "nobody could beat meanwhile"
    assert [look(5) for _ in range(12)] == [Status.RUNNING] * 11 + [Status.QUEUED]


def test_waiting_runs_without_a_worker_are_said(dispatcher: Dispatcher, queue: Queue) -> None:
    with capture_logs() as logs:
        dispatcher.watch()
        assert logs == []
        queue()
        dispatcher.dispatch()
        dispatcher.watch()
    assert [entry["runs"] for entry in logs if entry["log_level"] == "warning"] == [1]


def test_a_duty_goes_on_after_any_error() -> None:
    stopping = threading.Event()
    calls: list[int] = []

    def work() -> None:
        calls.append(1)
        if len(calls) == 5:
            stopping.set()
        raise [broker.BrokerAway("x"), RuntimeError("y")][len(calls) % 2]

    duty = Duty(work, 0.001, stopping)
    duty.start()
    duty.join(10)
    assert len(calls) == 5


@pytest.mark.slow
def test_the_process_ends_cleanly_on_sigterm_whether_its_servers_are_there_or_not(
    settings: DispatcherSettings, queue: Queue, connection: redis.Redis, tmp_path: Path
) -> None:
    run_id = queue()
    there = {
        "ROTBENCH_DATABASE_URL": settings.database_url.get_secret_value(),
        "ROTBENCH_BROKER_URL": settings.broker_url.get_secret_value(),
    }
    away = {
        "ROTBENCH_DATABASE_URL": "postgresql+psycopg://nobody@127.0.0.1:9/none",
        "ROTBENCH_BROKER_URL": "redis://127.0.0.1:9/0",
    }
    for place in (there, away):
        log = tmp_path / "log"
        with log.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "worker.dispatcher"], cwd=ROOT, env=os.environ | place, stderr=file
            )
        while "dispatcher ready" not in log.read_text():
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        time.sleep(1.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0
        assert "Traceback" not in log.read_text()
        assert all(line.startswith("timestamp=") for line in log.read_text().splitlines())
    assert served(connection) == [[str(run_id)]]
