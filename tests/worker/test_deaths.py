"""Does a run survive whatever dies in the middle of it? Trainer, pool child and worker, one after the other."""

import signal
from collections.abc import Callable

import psutil
import pytest
from service import Service, gone
from sqlalchemy import text

from rotrnn_core.config import RunConfig
from rotrnn_core.records import Record
from store.status import FailureClass, Outcome, Status

pytestmark = pytest.mark.slow


def test_sigterm_costs_nothing_and_each_kill_9_an_attempt_and_none_a_step_or_an_orphan(
    service: Service, trained: Callable[[RunConfig], list[Record]], tiny: Callable[..., RunConfig]
) -> None:
    config = tiny(900)
    service.start_dispatcher()
    worker = service.start_worker()
    run_id = service.add(config, attempt_budget=4)

    def further() -> psutil.Process:
        """The trainer, standing still in an attempt that has come a little further than those before."""
        service.until(lambda: service.run(run_id).status is Status.RUNNING, "an attempt", 120)
        trainer: psutil.Process = service.hold(run_id, service.run(run_id).step + 5)
        return trainer

    def at_once() -> None:
        with service.sessions() as session:
            session.execute(text("UPDATE runs SET not_before = now() WHERE status = 'queued'"))

    trainer = service.hold(run_id, 60)
    worker.send_signal(signal.SIGTERM)
    trainer.resume()
    assert worker.wait(60) == 0
    given_back = service.run(run_id)
    assert (given_back.status, given_back.attempts_charged) == (Status.QUEUED, 0)
    assert service.workers() == []
    service.only_left("dispatcher")

    worker = service.start_worker()
    for victim in ("trainer", "pool child", "main process"):
        trainer = further()
        who = {"trainer": trainer, "pool child": service.pool_child(), "main process": psutil.Process(worker.pid)}
        who[victim].kill()
        service.until(lambda trainer=trainer: gone(trainer), "end of the trainer", 60)
        if victim == "main process":
            worker.wait()
            service.only_left("dispatcher")
            service.start_worker()
        service.until(lambda: service.run(run_id).status is Status.QUEUED, f"the end of an attempt whose {victim} died")
        at_once()
    service.wait(run_id, Status.SUCCEEDED, within_s=180)

    attempts = service.attempts(run_id)
    assert [attempt.outcome for attempt in attempts] == [Outcome.GAVE_BACK, *[Outcome.FAILED] * 3, Outcome.SUCCEEDED]
    assert {attempt.failure_class for attempt in attempts[1:4]} == {FailureClass.WORKER_LOST}
    assert attempts[1].resumed_from_step == given_back.step >= 60
    # The words of the one whose worker died may come after its lease: they are not taken, and its start is unknown.
    assert all(attempts[place].resumed_from_step >= given_back.step for place in (2, 4))
    service.holds_exactly(run_id, trained(config))
    service.keeps_its_promises(run_id)
