"""Does a queued run end as training itself would, whatever is asked of it meanwhile? One worker, real processes."""

import signal
from collections.abc import Callable

import psutil
import pytest
from service import Service

from rotrnn_core.config import RunConfig
from rotrnn_core.records import Record
from store import runs
from store.outbox import Hint
from store.status import FailureClass, Outcome, Priority, Status
from worker import broker

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("runs")]

Trained = Callable[[RunConfig], list[Record]]
Tiny = Callable[..., RunConfig]
LONG = 300


def test_a_queued_run_ends_with_every_record_that_training_yields_however_often_its_message_comes(
    running: Service, trained: Trained, tiny: Tiny
) -> None:
    app = broker.make_app(running.broker_url)
    run_id = running.add(tiny(LONG))
    again = [Hint(0, run_id, Priority.NORMAL)] * 5
    broker.publish(app, again)
    running.wait(run_id, Status.RUNNING, Status.SUCCEEDED)
    broker.publish(app, again)
    run = running.wait(run_id, Status.SUCCEEDED, within_s=180)
    broker.publish(app, again)
    running.until_idle()
    running.holds_exactly(run_id, trained(tiny(LONG)))
    assert (run.step, run.attempt, run.attempts_charged) == (LONG, 1, 0)
    assert run.parameter_count
    (attempt,) = running.attempts(run_id)
    assert attempt.outcome is Outcome.SUCCEEDED
    assert attempt.environment["torch"]
    assert not list((running.folder / "spool").glob("*.jsonl"))


def test_cancel_ends_a_run_that_trains_and_one_that_waits_and_the_worker_is_seen_busy_and_idle(
    running: Service, tiny: Tiny
) -> None:
    trains, waits = running.add(tiny(LONG)), running.add(tiny(LONG))
    trainer = running.hold(trains, 1)
    running.until(lambda: running.workers()[0].worker.run_id == trains, "the worker busy")
    running.ask(runs.request_cancel, waits)
    assert running.run(waits).status is Status.CANCELLED
    running.ask(runs.request_cancel, trains)
    trainer.resume()
    assert running.wait(trains, Status.CANCELLED, within_s=60).step < LONG
    assert not trainer.is_running()
    running.until_idle()
    assert running.attempts(waits) == []
    (heard,) = running.workers()
    assert (heard.worker.pid, heard.worker.device) == (running.children["worker"].pid, "cpu:0")
    assert heard.beat_age_s < 60


def test_a_paused_run_goes_on_where_it_was_and_from_one_checkpoint_earlier_where_the_last_is_damaged(
    running: Service, trained: Trained, tiny: Tiny
) -> None:
    def paused_at(step: int) -> int:
        trainer = running.hold(run_id, step)
        running.ask(runs.request_pause, run_id)
        trainer.resume()
        paused = running.wait(run_id, Status.PAUSED)
        assert paused.attempts_charged == 0
        return int(paused.step)

    config = tiny(2 * LONG)
    run_id = running.add(config)
    first_pause = paused_at(30)
    running.ask(runs.resume, run_id)
    second_pause = paused_at(first_pause + 1)
    assert 30 <= first_pause < second_pause < 2 * LONG
    newest, older = running.checkpoints(run_id)[:2]
    path = running.folder / "artifacts" / newest.path
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    running.ask(runs.resume, run_id)
    running.wait(run_id, Status.SUCCEEDED, within_s=180)
    attempts = running.attempts(run_id)
    assert [attempt.outcome for attempt in attempts] == [Outcome.PAUSED, Outcome.PAUSED, Outcome.SUCCEEDED]
    assert [attempt.resumed_from_step for attempt in attempts[1:]] == [first_pause, older.step]
    assert older.step < newest.step == second_pause
    assert any(f"the checkpoint of step {newest.step} is passed over" in line for line in running.log_of(run_id))
    running.holds_exactly(run_id, trained(config))


def test_a_config_that_no_door_would_let_in_fails_with_its_class_and_a_message(running: Service, tiny: Tiny) -> None:
    config = tiny(60).to_dict()
    config["model"]["d_state"] = 7
    run_id = running.add(config, unchecked=True)
    run = running.wait(run_id, Status.FAILED)
    assert (run.failure_class, run.attempts_charged) == (FailureClass.BAD_CONFIG, 1)
    assert run.reason.startswith("model.d_state is 7")
    assert any("Traceback" in line for line in running.log_of(run_id))


def test_a_high_priority_is_served_before_a_low_one(running: Service, tiny: Tiny) -> None:
    busy = running.add(tiny(LONG))
    trainer = running.hold(busy, 1)
    queued = [
        running.add({"task": {"name": "nonsense"}}, unchecked=True, priority=priority)
        for priority in (Priority.LOW, Priority.NORMAL, Priority.HIGH)
    ]
    running.until(lambda: broker.waiting(broker.make_app(running.broker_url)) == 3, "three hints waiting")
    running.ask(runs.request_cancel, busy)
    trainer.resume()
    for run_id in queued:
        running.wait(run_id, Status.FAILED)
    begun = [running.attempts(run_id)[0].started_at for run_id in queued]
    low, normal, high = begun
    assert high < normal < low


def test_a_second_worker_on_the_same_device_does_not_start(running: Service) -> None:
    running.until_idle()
    second = running.start_worker("second", ROTBENCH_WORKER_NAME="second")
    assert second.wait(60) != 0
    words = running.log("second").read_text()
    assert f"device cpu:0 is held by process {running.children['worker'].pid}" in words
    assert "Traceback" not in words
    assert len(running.workers()) == 1


def test_a_stopped_worker_is_a_zombie_whose_writes_are_refused(running: Service, trained: Trained, tiny: Tiny) -> None:
    run_id = running.add(tiny(LONG))
    trainer = running.hold(run_id, 50)
    frozen = [running.pool_child(), psutil.Process(running.children["worker"].pid), trainer]
    for process in frozen:
        process.suspend()
    running.start_worker("other", ROTBENCH_DEVICE="cpu:1")
    running.until(lambda: running.run(run_id).worker_id.endswith("cpu:1"), "another worker", 180)
    for process in frozen:
        process.resume()
    running.until(lambda: not trainer.is_running(), "the end of the zombie's trainer", 60)
    running.wait(run_id, Status.SUCCEEDED, within_s=180)
    running.holds_exactly(run_id, trained(tiny(LONG)))
    assert [attempt.outcome for attempt in running.attempts(run_id)] == [Outcome.FAILED, Outcome.SUCCEEDED]
    running.children["other"].send_signal(signal.SIGTERM)
    assert running.children["other"].wait(60) == 0
