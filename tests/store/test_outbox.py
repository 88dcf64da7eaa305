"""Does every queued run get its hint, in the right order, and again when it was lost?"""

from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session, sessionmaker

from store import outbox, runs
from store.status import FailureClass, Priority, Status
from store.tables import OutboxRow, RunRow


def _publish(scene: Any) -> list[Any]:
    hints = outbox.take(scene.session)
    outbox.mark_published(scene.session, [hint.id for hint in hints])
    scene.session.commit()
    return [hint.run_id for hint in hints]


def _age(scene: Any, seconds: int) -> None:
    past = func.make_interval(0, 0, 0, 0, 0, 0, seconds)
    scene.session.execute(update(OutboxRow).values(published_at=OutboxRow.published_at - past))
    scene.session.execute(update(RunRow).values(not_before=RunRow.not_before - past))
    scene.session.commit()


def test_a_run_and_its_hint_are_there_together_or_not_at_all(scene: Any) -> None:
    fields = {"config_hash": "h", "cell": "lru-tied", "task": "listops", "depth": 1, "seed": 2**62, "total_steps": 5}
    runs.add(scene.session, config={"a": 1}, **fields)
    scene.session.rollback()
    assert outbox.take(scene.session) == []
    run = runs.add(scene.session, config={"a": 1}, name="mine", **fields)
    scene.session.commit()
    (hint,) = outbox.take(scene.session)
    assert (hint.run_id, hint.priority) == (run.id, Priority.NORMAL)
    assert (run.status, run.attempt, run.step, run.seed) == (Status.QUEUED, 0, 0, 2**62)
    assert run.created_at is not None


def test_hints_come_by_priority_and_then_in_the_order_of_submission(scene: Any) -> None:
    levels = [Priority.LOW, Priority.NORMAL, Priority.HIGH, Priority.NORMAL, Priority.HIGH]
    made = [(level, place, scene.add(priority=level)) for place, level in enumerate(levels)]
    wanted = [run_id for level, place, run_id in sorted(made, key=lambda one: (-one[0], one[1]))]
    assert [hint.run_id for hint in outbox.take(scene.session)] == wanted


def test_two_dispatchers_never_hold_the_same_hint(scene: Any, sessions: sessionmaker[Session]) -> None:
    made = {scene.add() for _ in range(6)}
    with sessions.begin() as one, sessions.begin() as other:
        first = {hint.run_id for hint in outbox.take(one, 4)}
        second = {hint.run_id for hint in outbox.take(other, 4)}
    assert (len(first), len(second)) == (4, 2)
    assert first | second == made


def test_a_dispatcher_that_dies_before_its_commit_leaves_its_hints(scene: Any, sessions: sessionmaker[Session]) -> None:
    run_id = scene.add()
    with sessions() as dying:
        hints = outbox.take(dying)
        outbox.mark_published(dying, [hint.id for hint in hints])
    assert _publish(scene) == [run_id]
    assert _publish(scene) == []


def test_only_hints_of_queued_runs_whose_time_has_come_are_taken(scene: Any) -> None:
    for status in Status:
        if status is not Status.QUEUED:
            scene.put(status)
    delayed = scene.add()
    assert _publish(scene) == [delayed]
    scene.finish(scene.claim(delayed), Status.FAILED, FailureClass.STALLED)
    assert _publish(scene) == []
    scene.make_due(delayed)
    assert _publish(scene) == [delayed]


def test_the_sweeper_writes_a_hint_again_that_was_lost(scene: Any) -> None:
    lost, claimed, fresh = scene.add(), scene.add(), scene.add()
    assert len(_publish(scene)) == 3
    scene.claim(claimed)
    assert outbox.sweep(scene.session, older_than_s=60) == 0
    _age(scene, 100)
    scene.session.execute(update(OutboxRow).where(OutboxRow.run_id == fresh).values(published_at=func.now()))
    assert outbox.sweep(scene.session, older_than_s=60) == 1
    assert outbox.sweep(scene.session, older_than_s=60) == 0
    assert _publish(scene) == [lost]


def test_the_sweeper_helps_a_run_whose_outbox_row_is_gone_altogether(scene: Any) -> None:
    run_id = scene.add()
    scene.session.execute(delete(OutboxRow))
    _age(scene, 100)
    assert outbox.sweep(scene.session, older_than_s=60) == 1
    assert _publish(scene) == [run_id]


def test_the_sweeper_leaves_no_rows_that_are_of_no_more_use(scene: Any) -> None:
    for status in Status:
        scene.put(status)
    _publish(scene)
    _age(scene, 100)
    outbox.sweep(scene.session, older_than_s=60)
    scene.session.commit()
    left = scene.session.scalars(select(OutboxRow)).all()
    assert [row.published_at for row in left] == [None]
    assert scene.status(left[0].run_id) is Status.QUEUED


def test_a_delayed_run_is_not_hinted_before_its_time(scene: Any) -> None:
    claim = scene.claimed()
    scene.finish(claim, Status.FAILED, FailureClass.WORKER_LOST)
    scene.session.execute(delete(OutboxRow))
    assert outbox.sweep(scene.session, older_than_s=0) == 0
    scene.make_due(claim.run_id)
    assert outbox.sweep(scene.session, older_than_s=0) == 1


def test_waiting_counts_the_runs_that_a_worker_could_have_claimed(scene: Any) -> None:
    published, delayed = scene.add(), scene.claimed()
    scene.finish(delayed, Status.FAILED, FailureClass.STALLED)
    assert outbox.waiting(scene.session) == 0
    assert _publish(scene) == [published]
    scene.add()
    assert outbox.waiting(scene.session) == 1
