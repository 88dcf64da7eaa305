"""Do cancel, pause and resume work with no worker alive, and twice?"""

from typing import Any

import pytest
from sqlalchemy import select

from store import outbox, runs
from store.errors import IllegalMove
from store.status import FailureClass, Status
from store.tables import OutboxRow


@pytest.mark.parametrize("status", [Status.QUEUED, Status.PAUSED])
def test_a_run_that_nobody_works_on_is_cancelled_at_once(scene: Any, status: Status) -> None:
    run_id = scene.put(status)
    run = runs.request_cancel(scene.session, run_id)
    assert run.status is Status.CANCELLED
    assert run.finished_at is not None
    scene.session.commit()
    assert runs.claim(scene.session, run_id, worker_id="late", lease_s=60, host="h", device="cpu") is None


def test_a_running_run_is_cancelled_though_its_worker_is_dead(scene: Any) -> None:
    claim = scene.claimed()
    assert runs.request_cancel(scene.session, claim.run_id).status is Status.CANCELLING
    assert runs.request_cancel(scene.session, claim.run_id).status is Status.CANCELLING
    scene.expire(claim.run_id)
    runs.reap(scene.session)
    assert scene.status(claim.run_id) is Status.CANCELLED


def test_a_cancelled_run_never_shows_as_succeeded(scene: Any) -> None:
    claim = scene.claimed()
    runs.request_cancel(scene.session, claim.run_id)
    assert scene.finish(claim, Status.SUCCEEDED) is Status.CANCELLED


def test_a_pause_takes_effect_when_the_worker_gives_the_run_back(scene: Any) -> None:
    claim = scene.claimed()
    assert runs.request_pause(scene.session, claim.run_id).status is Status.RUNNING
    given_back = runs.give_back(scene.session, claim.run_id, claim.attempt, claim.token, "paused as asked")
    assert given_back is Status.PAUSED
    resumed = runs.resume(scene.session, claim.run_id)
    assert (resumed.status, resumed.pause_requested) == (Status.QUEUED, False)


def test_a_pause_that_is_taken_back_leaves_the_run_going(scene: Any) -> None:
    claim = scene.claimed()
    runs.request_pause(scene.session, claim.run_id)
    assert runs.resume(scene.session, claim.run_id).status is Status.RUNNING
    beat = runs.beat(scene.session, claim.run_id, claim.attempt, claim.token, step=1, lease_s=60)
    assert not beat.pause
    assert runs.give_back(scene.session, claim.run_id, claim.attempt, claim.token, "late") is Status.QUEUED


def test_a_run_that_should_pause_and_loses_its_worker_is_paused(scene: Any) -> None:
    claim = scene.claimed()
    runs.request_pause(scene.session, claim.run_id)
    scene.expire(claim.run_id)
    runs.reap(scene.session)
    assert scene.status(claim.run_id) is Status.PAUSED


@pytest.mark.parametrize("status", [Status.PAUSED, Status.FAILED, Status.CANCELLED])
def test_a_resumed_run_is_queued_with_its_hint_and_a_fresh_budget(scene: Any, status: Status) -> None:
    run_id = scene.put(status)
    run = runs.resume(scene.session, run_id)
    assert (run.status, run.failure_class, run.reason) == (Status.QUEUED, None, None)
    assert (run.attempts_charged, run.finished_at) == (0, None)
    scene.session.commit()
    assert len(scene.session.scalars(select(OutboxRow).where(OutboxRow.run_id == run_id)).all()) == 2
    assert run_id in {hint.run_id for hint in outbox.take(scene.session)}
    scene.claim(run_id)


def test_after_a_resume_the_whole_budget_is_there_again(scene: Any) -> None:
    run_id = scene.add(attempt_budget=2)
    for _ in range(2):
        for _ in range(2):
            claim = scene.claim(run_id)
            scene.finish(claim, Status.FAILED, FailureClass.WORKER_LOST)
            scene.make_due(run_id)
        assert scene.status(run_id) is Status.FAILED
        runs.resume(scene.session, run_id)
        scene.session.commit()


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.DIVERGED])
def test_a_result_is_final(scene: Any, status: Status) -> None:
    run_id = scene.put(status)
    for act in (runs.request_cancel, runs.request_pause, runs.resume):
        with pytest.raises(IllegalMove, match=f"is {status}"):
            act(scene.session, run_id)


def test_a_run_that_is_being_cancelled_cannot_be_paused_or_resumed(scene: Any) -> None:
    claim = scene.claimed()
    runs.request_pause(scene.session, claim.run_id)
    runs.request_cancel(scene.session, claim.run_id)
    for act in (runs.request_pause, runs.resume):
        with pytest.raises(IllegalMove, match="is cancelling"):
            act(scene.session, claim.run_id)
