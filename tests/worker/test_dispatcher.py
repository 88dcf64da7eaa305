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
from store import events, runs, workers
from store.engine import session_factory
from store.status import FailureClass, Priority, Status
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


def test_a_run_goes_where_its_data_are(dispatcher: Dispatcher, queue: Queue, connection: redis.Redis) -> None:
    anywhere, text = queue(), queue(needs_data="text")
    dispatcher.dispatch()
    assert served(connection) == [[str(anywhere)]]
    assert broker.waiting(dispatcher.app, broker.queue_of("text")) == 1
    assert text not in served(connection)


def test_a_hint_that_one_queue_lost_is_published_again_though_another_holds_enough(
    dispatcher: Dispatcher, queue: Queue, connection: redis.Redis
) -> None:
    for needs_data in (None, None, "text"):
        queue(needs_data=needs_data)
    dispatcher.dispatch()
    for key in connection.scan_iter("rotbench.data.*"):
        connection.delete(key)
    time.sleep(0.02)
    for _ in range(3):
        dispatcher.sweep()
        dispatcher.dispatch()
    held = [broker.waiting(dispatcher.app, broker.queue_of(name)) for name in (None, "text")]
    assert held == [2, 1]


def test_runs_whose_data_no_living_worker_has_say_so_and_end_when_that_lasts(
    settings: DispatcherSettings, queue: Queue, engine: Engine
) -> None:
    sessions = session_factory(engine)

    def waiting(data_wait_s: float) -> Dispatcher:
        long_lived = settings.model_copy(update={"lease_s": 60.0, "data_wait_s": data_wait_s})
        return Dispatcher(long_lived, broker.make_app(settings.broker_url.get_secret_value()), sessions)

    def told(run_id: UUID) -> list[str]:
        with sessions() as session:
            return [event.kind for event in events.read(session, run_id)]

    def state(run_id: UUID) -> tuple[Status, FailureClass | None, int]:
        with sessions() as session:
            run = runs.get(session, run_id)
            return run.status, run.failure_class, run.attempts_charged

    unknown, anywhere = queue(needs_data="text"), queue()
    waiting(0).dispatch()
    waiting(0).give_up()
    assert told(unknown) == told(anywhere) == ["submitted"], "while no worker lives nothing is known"
    with sessions.begin() as session:
        workers.beat(
            session, "w", host="h", device="cpu", device_uuid="u", pid=1, environment={}, data=["image", "path-x"]
        )
    lacking, there = queue(needs_data="text"), queue(needs_data="image")
    waiting(600).dispatch()
    waiting(600).give_up()
    assert (told(lacking), told(there)) == (["submitted", "waits"], ["submitted"])
    assert state(lacking) == state(there) == (Status.QUEUED, None, 0)
    waiting(0).give_up()
    assert state(lacking) == state(unknown) == (Status.FAILED, FailureClass.DATA_MISSING, 0)
    assert state(there) == state(anywhere) == (Status.QUEUED, None, 0)
    with sessions.begin() as session:
        assert "rotbench data fetch text" in str(runs.get(session, lacking).reason)
        assert runs.resume(session, lacking).status is Status.QUEUED


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
    has_worked = {"published": there, "what=BrokerAway": away}
    for sign, place in has_worked.items():
        log = tmp_path / "log"
        with log.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "worker.dispatcher"], cwd=ROOT, env=os.environ | place, stderr=file
            )
        deadline = time.monotonic() + 60
        while not all(words in log.read_text() for words in ("dispatcher ready", sign)):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0
        assert "Traceback" not in log.read_text()
        assert all(line.startswith("timestamp=") for line in log.read_text().splitlines())
    assert served(connection) == [[str(run_id)]]
