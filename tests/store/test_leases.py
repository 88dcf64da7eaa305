"""Does one worker at a time hold a run, and does a lost lease shut its writer out?"""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.orm import Session, sessionmaker

from rotrnn_core import records
from store import attempts, events, ingest, logs, metrics, requests, runs
from store.errors import IllegalMove, LeaseLost, NotFound
from store.status import FailureClass, Outcome, Status
from store.tables import OutboxRow, RunRow


def _all_at_once(number: int, act: Callable[[int], Any]) -> list[Any]:
    gate = threading.Barrier(number)
    results: list[Any] = [None] * number

    def run(place: int) -> None:
        gate.wait()
        results[place] = act(place)

    threads = [threading.Thread(target=run, args=(place,)) for place in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results


def test_of_ten_workers_that_claim_one_run_exactly_one_wins(scene: Any, sessions: sessionmaker[Session]) -> None:
    for _ in range(5):
        run_id = scene.add()

        def claim(place: int, run_id: Any = run_id) -> runs.Claim | None:
            with sessions.begin() as session:
                return runs.claim(session, run_id, worker_id=f"w{place}", lease_s=60, host="h", device="cpu")

        winners = [claim for claim in _all_at_once(10, claim) if claim is not None]
        assert len(winners) == 1
        run = runs.get(scene.session, run_id)
        assert (run.status, run.attempt, run.lease_token) == (Status.RUNNING, 1, winners[0].token)
        assert len(attempts.read(scene.session, run_id)) == 1
        scene.session.rollback()


def test_a_duplicate_message_and_an_unknown_run_are_dropped(scene: Any) -> None:
    claim = scene.claimed()
    for run_id in (claim.run_id, uuid4()):
        assert runs.claim(scene.session, run_id, worker_id="late", lease_s=60, host="h", device="cpu") is None


def test_a_claim_gives_all_that_a_worker_needs(scene: Any) -> None:
    first = scene.claimed()
    scene.start(first)
    scene.write(first, checkpoints=[records.Checkpoint(step, f"{step}.pt", "0" * 64, 5) for step in (20, 10)])
    runs.give_back(scene.session, first.run_id, first.attempt, first.token, "going down")
    scene.session.commit()
    second = scene.claim(first.run_id)
    assert (second.attempt, second.total_steps) == (2, 100)
    assert second.token != first.token
    assert second.config["task"] == {"name": "listops-short"}
    assert [kept.step for kept in second.checkpoints] == [20, 10]


def test_a_beat_prolongs_the_lease_by_the_clock_of_the_database_and_never_takes_steps_back(scene: Any) -> None:
    claim = scene.claimed()
    for step, shown in ((30, 30), (20, 30), (None, 30)):
        beat = runs.beat(scene.session, claim.run_id, claim.attempt, claim.token, step=step, lease_s=500)
        assert (beat.cancel, beat.pause) == (False, False)
        scene.session.commit()
        assert runs.get(scene.session, claim.run_id).step == shown
    left_s = scene.session.scalar(
        select(func.extract("epoch", RunRow.lease_expires_at - func.clock_timestamp())).where(RunRow.id == claim.run_id)
    )
    assert 490 < left_s <= 500


def test_a_beat_brings_what_people_asked_for(scene: Any) -> None:
    claim = scene.claimed()
    requests.request_pause(scene.session, claim.run_id)
    beat = runs.beat(scene.session, claim.run_id, claim.attempt, claim.token, step=1, lease_s=60)
    assert (beat.cancel, beat.pause) == (False, True)
    requests.request_cancel(scene.session, claim.run_id)
    beat = runs.beat(scene.session, claim.run_id, claim.attempt, claim.token, step=1, lease_s=60)
    assert beat.cancel


ZOMBIE_ACTS: dict[str, Callable[[Session, runs.Claim], Any]] = {
    "beat": lambda session, claim: runs.beat(session, claim.run_id, claim.attempt, claim.token, step=9, lease_s=60),
    "succeed": lambda session, claim: runs.finish(
        session, claim.run_id, claim.attempt, claim.token, status=Status.SUCCEEDED
    ),
    "give back": lambda session, claim: runs.give_back(session, claim.run_id, claim.attempt, claim.token, "bye"),
    "write": lambda session, claim: ingest.write(
        session,
        claim.run_id,
        claim.attempt,
        claim.token,
        ingest.Batch(metrics=[("train_loss", 9, 9.0)], logs=[(1, datetime.now(UTC), "info", "boo")], step=9),
    ),
}


@pytest.mark.parametrize("name", ZOMBIE_ACTS)
@pytest.mark.parametrize("moment", ["queued again", "claimed by another", "ended", "cancelled"])
def test_a_writer_that_lost_its_lease_changes_nothing(scene: Any, name: str, moment: str) -> None:
    zombie = scene.claimed()
    if moment == "ended":
        scene.finish(zombie, Status.SUCCEEDED)
    else:
        if moment == "cancelled":
            requests.request_cancel(scene.session, zombie.run_id)
        scene.expire(zombie.run_id)
        assert runs.reap(scene.session) == [zombie.run_id]
        scene.make_due(zombie.run_id)
        if moment == "claimed by another":
            scene.claim(zombie.run_id)

    def seen() -> Any:
        run = runs.get(scene.session, zombie.run_id)
        told = [event.message for event in events.read(scene.session, zombie.run_id)]
        return (
            (run.status, run.attempt, run.lease_token, run.lease_expires_at, run.step),
            metrics.recorded(scene.session, zombie.run_id),
            logs.read(scene.session, zombie.run_id).items,
            told,
        )

    before = seen()
    with pytest.raises(LeaseLost, match=f"attempt 1 does not hold the lease of run {zombie.run_id}"):
        ZOMBIE_ACTS[name](scene.session, zombie)
    scene.session.commit()
    assert seen() == before


@pytest.mark.parametrize("wrong", ["token", "attempt", "run"])
def test_the_fence_asks_for_run_attempt_and_token(scene: Any, wrong: str) -> None:
    claim, other = scene.claimed(), scene.claimed()
    run_id = other.run_id if wrong == "run" else claim.run_id
    attempt = 2 if wrong == "attempt" else 1
    token = uuid4() if wrong == "token" else claim.token
    with pytest.raises(LeaseLost):
        runs.beat(scene.session, run_id, attempt, token, step=1, lease_s=60)


def test_the_reaper_waits_for_a_writer_that_is_inside_the_fence(scene: Any, sessions: sessionmaker[Session]) -> None:
    claim = scene.claimed()
    scene.expire(claim.run_id)
    with sessions.begin() as writer, sessions.begin() as reaper:
        ingest.write(writer, claim.run_id, claim.attempt, claim.token, ingest.Batch(metrics=[("train_loss", 1, 1.0)]))
        assert runs.reap(reaper) == []
    with sessions.begin() as reaper:
        assert runs.reap(reaper) == [claim.run_id]


def test_a_late_beat_keeps_a_lease_that_nobody_has_taken(scene: Any) -> None:
    claim = scene.claimed()
    scene.expire(claim.run_id)
    runs.beat(scene.session, claim.run_id, claim.attempt, claim.token, step=1, lease_s=60)
    assert runs.reap(scene.session) == []


def test_a_server_that_has_just_started_reaps_nothing(scene: Any) -> None:
    claim = scene.claimed()
    scene.expire(claim.run_id)
    assert runs.reap(scene.session, grace_s=1e9) == []
    assert runs.reap(scene.session) == [claim.run_id]


def test_lost_leases_are_tried_again_ever_later_until_the_budget_is_spent(scene: Any) -> None:
    run_id = scene.add(attempt_budget=3)
    delays = []
    for attempt in (1, 2, 3):
        assert scene.status(run_id) is Status.QUEUED
        assert scene.claim(run_id).attempt == attempt
        scene.expire(run_id)
        assert runs.reap(scene.session) == [run_id]
        scene.session.commit()
        run = runs.get(scene.session, run_id)
        delays.append(run.not_before - run.queued_at)
        if attempt < 3:
            assert runs.claim(scene.session, run_id, worker_id="early", lease_s=60, host="h", device="cpu") is None
            scene.make_due(run_id)
    run = runs.get(scene.session, run_id)
    assert (run.status, run.failure_class) == (Status.FAILED, FailureClass.WORKER_LOST)
    assert "not heard of" in (run.reason or "")
    assert timedelta(seconds=0.9) < delays[0] < delays[1]
    assert [row.outcome for row in attempts.read(scene.session, run_id)] == [Outcome.FAILED] * 3


def test_two_reapers_share_the_work(scene: Any, sessions: sessionmaker[Session]) -> None:
    lost = [scene.claimed().run_id for _ in range(4)]
    for run_id in lost:
        scene.expire(run_id)
    with sessions.begin() as one, sessions.begin() as other:
        first = runs.reap(one, 2)
        second = runs.reap(other, 10)
    assert len(first) == len(second) == 2
    assert set(first) | set(second) == set(lost)


@pytest.mark.parametrize("failure_class", list(FailureClass))
def test_a_failure_goes_by_its_class(scene: Any, failure_class: FailureClass) -> None:
    claim = scene.claimed()
    retried = failure_class in (FailureClass.WORKER_LOST, FailureClass.STALLED)
    assert scene.finish(claim, Status.FAILED, failure_class) is (Status.QUEUED if retried else Status.FAILED)
    run = runs.get(scene.session, claim.run_id)
    assert run.failure_class == (None if retried else failure_class)
    assert attempts.read(scene.session, claim.run_id)[0].failure_class is failure_class
    hints = scene.session.scalars(select(OutboxRow).where(OutboxRow.run_id == claim.run_id)).all()
    assert len(hints) == (2 if retried else 1)


def test_a_run_that_is_given_back_is_not_charged(scene: Any) -> None:
    run_id = scene.add(attempt_budget=1)
    for _ in range(3):
        claim = scene.claim(run_id)
        assert runs.give_back(scene.session, run_id, claim.attempt, claim.token, "the worker stops") is Status.QUEUED
        scene.session.commit()
    assert runs.get(scene.session, run_id).attempts_charged == 0
    assert {row.outcome for row in attempts.read(scene.session, run_id)} == {Outcome.GAVE_BACK}


def test_a_diverged_run_says_where_and_a_finished_one_shows_all_its_steps(scene: Any) -> None:
    diverged = scene.put(Status.DIVERGED)
    run = runs.get(scene.session, diverged)
    assert (run.divergence_step, run.divergence_layer, run.divergence_kind) == (7, 1, "activation")
    assert runs.get(scene.session, scene.put(Status.SUCCEEDED)).step == 100


@pytest.mark.parametrize("status", [Status.FAILED, Status.DIVERGED])
def test_an_end_without_its_cause_is_refused(scene: Any, status: Status) -> None:
    claim = scene.claimed()
    with pytest.raises(ValueError, match=status):
        runs.finish(scene.session, claim.run_id, claim.attempt, claim.token, status=status)


@pytest.mark.parametrize("status", [Status.QUEUED, Status.PAUSED, Status.RUNNING, Status.CANCELLED])
def test_no_attempt_ends_in_a_state_that_is_no_end(scene: Any, status: Status) -> None:
    claim = scene.claimed()
    with pytest.raises(IllegalMove):
        runs.finish(scene.session, claim.run_id, claim.attempt, claim.token, status=status)


def test_the_log_of_events_tells_the_whole_story_in_order(scene: Any) -> None:
    run_id = scene.add()
    claim = scene.claim(run_id)
    scene.start(claim)
    scene.write(claim, checkpoints=[records.Checkpoint(10, "10.pt", "0" * 64, 5)])
    scene.expire(run_id)
    runs.reap(scene.session)
    scene.make_due(run_id)
    claim = scene.claim(run_id, "second")
    scene.start(claim, step=10)
    requests.request_cancel(scene.session, run_id)
    scene.finish(claim, Status.CANCELLED)
    told = events.read(scene.session, run_id)
    assert [event.kind for event in told] == [
        "submitted",
        "claimed",
        "started",
        "lease_lost",
        "requeued",
        "claimed",
        "started",
        "cancel_requested",
        "cancelled",
    ]
    assert [event.at for event in told] == sorted(event.at for event in told)
    assert told[6].message == "training goes on from step 10 of attempt 1"
    assert [event.id for event in events.read(scene.session, run_id, after=told[4].id)] == [e.id for e in told[5:]]


def test_reasons_of_any_bytes_can_be_kept(scene: Any) -> None:
    claim = scene.claimed()
    reason = "zero \x00, half a pair \ud800, " + "x" * 100_000
    runs.finish(
        scene.session,
        claim.run_id,
        claim.attempt,
        claim.token,
        status=Status.FAILED,
        failure_class=FailureClass.CODE_ERROR,
        reason=reason,
    )
    scene.session.commit()
    kept = runs.get(scene.session, claim.run_id).reason
    assert kept.startswith("zero \ufffd, half a pair ?, x")
    assert len(kept) < 17_000


def test_an_unknown_run_is_not_found(scene: Any) -> None:
    for act in (runs.get, runs.request_cancel, runs.request_pause, runs.resume, runs.delete):
        with pytest.raises(NotFound, match="there is no run"):
            act(scene.session, uuid4())


def test_clocks_are_the_databases_own(scene: Any) -> None:
    run = runs.get(scene.session, scene.put(Status.SUCCEEDED))
    now = scene.session.scalar(text("SELECT clock_timestamp()"))
    assert run.created_at <= run.started_at <= run.finished_at <= now
    assert run.created_at.tzinfo is not None


def test_a_run_is_claimed_only_by_who_has_its_data(scene: Any) -> None:
    def claimed_with(run_id: UUID, *data: str) -> bool:
        found = runs.claim(scene.session, run_id, worker_id="w", lease_s=60, host="h", device="cpu", data=data)
        scene.session.commit()
        return found is not None

    run_id = scene.add(needs_data="text")
    assert not claimed_with(run_id)
    assert not claimed_with(run_id, "image")
    assert runs.get(scene.session, run_id).attempt == 0
    assert claimed_with(run_id, "image", "text")
    assert claimed_with(scene.add())
