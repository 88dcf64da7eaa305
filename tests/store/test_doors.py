"""Are retries answered once, tokens kept as hashes, and devices held by one worker?"""

import threading
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session, sessionmaker

from store import idempotency, runs, tokens, workers
from store.errors import DeviceTaken, Duplicate, NotFound
from store.tables import IdempotencyRow, RunRow, TokenRow, WorkerRow

SCOPE = "POST /v1/runs"


def test_fifty_requests_with_one_key_make_one_run(scene: Any, sessions: sessionmaker[Session]) -> None:
    answers: list[Any] = []
    gate = threading.Barrier(8)

    def post() -> None:
        gate.wait()
        for _ in range(6):
            with sessions.begin() as session:
                run_id = idempotency.claim(session, SCOPE, "key", "body")
                if run_id is None:
                    (run_id,) = runs.add_many(session, [scene.new()])
                    idempotency.fill(session, SCOPE, "key", run_id)
            answers.append(run_id)

    threads = [threading.Thread(target=post) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(answers) == 48
    assert len(set(answers)) == 1
    assert scene.session.scalar(select(func.count()).select_from(RunRow)) == 1


def test_a_key_whose_request_failed_is_free_again(scene: Any) -> None:
    assert idempotency.claim(scene.session, SCOPE, "key", "body") is None
    scene.session.rollback()
    assert idempotency.claim(scene.session, SCOPE, "key", "another body") is None


def test_a_key_with_another_body_is_refused_and_with_another_scope_is_new(scene: Any) -> None:
    made = uuid4()
    assert idempotency.claim(scene.session, SCOPE, "key", "body") is None
    idempotency.fill(scene.session, SCOPE, "key", made)
    scene.session.commit()
    assert idempotency.claim(scene.session, SCOPE, "key", "body") == made
    with pytest.raises(Duplicate, match="'key' was used before with another body"):
        idempotency.claim(scene.session, SCOPE, "key", "other")
    assert idempotency.claim(scene.session, "POST /v1/sweeps", "key", "other") is None


def test_old_keys_are_forgotten(scene: Any) -> None:
    idempotency.claim(scene.session, SCOPE, "key", "body")
    assert idempotency.forget(scene.session, older_than_s=60) == 0
    past = func.clock_timestamp() - func.make_interval(0, 0, 0, 1)
    scene.session.execute(update(IdempotencyRow).values(created_at=past))
    assert idempotency.forget(scene.session, older_than_s=60) == 1


def test_a_token_lets_in_until_it_is_revoked_and_its_text_is_never_kept(scene: Any) -> None:
    token = tokens.issue(scene.session, "notebook")
    row = tokens.verify(scene.session, token)
    assert row is not None
    assert row.name == "notebook"
    kept = str(scene.session.execute(select(TokenRow.name, TokenRow.sha256)).all())
    assert token not in kept
    for wrong in ("", token + "x", token[:-1], token.upper(), "\ud800", "\x00"):
        assert tokens.verify(scene.session, wrong) is None
    tokens.revoke(scene.session, row.id)
    assert tokens.verify(scene.session, token) is None
    with pytest.raises(NotFound):
        tokens.revoke(scene.session, uuid4())


def test_a_token_that_is_made_sure_of_twice_is_there_once(scene: Any) -> None:
    for _ in range(2):
        tokens.ensure(scene.session, "first", "a-long-and-random-token")
    assert len(tokens.read(scene.session)) == 1
    with pytest.raises(ValueError, match="empty"):
        tokens.ensure(scene.session, "first", "")


def _beat(scene: Any, worker_id: str, **changes: Any) -> None:
    facts: dict[str, Any] = {"host": "here", "device": "cuda:0", "device_uuid": "GPU-1", "pid": 1, "environment": {}}
    try:
        workers.beat(scene.session, worker_id, **(facts | changes))
        scene.session.commit()
    finally:
        scene.session.rollback()


def _fall_silent(scene: Any) -> None:
    past = func.make_interval(0, 0, 0, 0, 0, 2)
    scene.session.execute(update(WorkerRow).values(beat_at=WorkerRow.beat_at - past))
    scene.session.commit()


def test_a_worker_is_seen_with_the_age_of_its_beat_and_what_it_works_on(scene: Any) -> None:
    run_id = uuid4()
    _beat(scene, "w", environment={"torch": "2.13.0"})
    _fall_silent(scene)
    (heard,) = workers.read(scene.session)
    assert 120 <= heard.beat_age_s < 180
    _beat(scene, "w", run_id=run_id)
    (heard,) = workers.read(scene.session)
    assert heard.beat_age_s < 60
    assert (heard.worker.id, heard.worker.run_id, heard.worker.device_uuid) == ("w", run_id, "GPU-1")


def test_two_workers_cannot_hold_one_device(scene: Any) -> None:
    _beat(scene, "one")
    with pytest.raises(DeviceTaken, match="GPU-1 is held by worker one") as refused:
        _beat(scene, "two", pid=2)
    assert (refused.value.holder, refused.value.host, refused.value.pid) == ("one", "here", 1)
    _beat(scene, "two", pid=2, device_uuid="GPU-2")
    with pytest.raises(DeviceTaken, match="GPU-1 is held by worker one"):
        _beat(scene, "two", pid=2)
    assert {heard.worker.id: heard.worker.device_uuid for heard in workers.read(scene.session)} == {
        "one": "GPU-1",
        "two": "GPU-2",
    }


def test_a_device_whose_holder_fell_silent_can_be_taken(scene: Any) -> None:
    _beat(scene, "one")
    _fall_silent(scene)
    _beat(scene, "two", pid=2)
    assert [heard.worker.id for heard in workers.read(scene.session)] == ["two"]
    with pytest.raises(DeviceTaken):
        _beat(scene, "one")


def test_a_worker_that_starts_again_on_its_host_replaces_itself_and_one_elsewhere_does_not(scene: Any) -> None:
    _beat(scene, "w")
    before = workers.read(scene.session)[0].worker.started_at
    _beat(scene, "w", pid=2)
    (heard,) = workers.read(scene.session)
    assert heard.worker.pid == 2
    assert heard.worker.started_at > before
    with pytest.raises(DeviceTaken):
        _beat(scene, "w", pid=3, host="there", device_uuid="GPU-9")


def test_a_worker_that_ends_frees_its_device_but_not_its_successors(scene: Any) -> None:
    _beat(scene, "w", pid=2)
    workers.forget(scene.session, "w", 1)
    assert len(workers.read(scene.session)) == 1
    workers.forget(scene.session, "w", 2)
    scene.session.commit()
    _beat(scene, "other")


def test_of_workers_that_start_at_once_on_one_device_one_wins(scene: Any, sessions: sessionmaker[Session]) -> None:
    gate = threading.Barrier(6)
    won: list[int] = []

    def start(place: int) -> None:
        gate.wait()
        try:
            with sessions.begin() as session:
                workers.beat(
                    session,
                    f"w{place}",
                    host="h",
                    device="cuda:0",
                    device_uuid="GPU-1",
                    pid=place,
                    environment={},
                )
            won.append(place)
        except DeviceTaken:
            pass

    threads = [threading.Thread(target=start, args=(place,)) for place in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(won) == 1
    assert len(workers.read(scene.session)) == 1
