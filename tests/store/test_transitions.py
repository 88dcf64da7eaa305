"""Is the list of moves the law for every function that changes a state?"""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import update
from sqlalchemy.exc import IntegrityError

from store import leases, requests, runs, transitions
from store.errors import IllegalMove, LeaseLost
from store.status import MOVES, FailureClass, Status
from store.tables import AttemptRow, RunRow

PAIRS = [(status, to) for status in Status for to in Status]


@pytest.mark.parametrize(("status", "to"), PAIRS)
def test_a_move_works_exactly_when_it_is_in_the_list(scene: Any, status: Status, to: Status) -> None:
    run = transitions.locked(scene.session, scene.put(status))
    if to in MOVES[status]:
        transitions.move(run, to)
        assert run.status is to
    else:
        with pytest.raises(IllegalMove, match=f"is {status}: it cannot be {to}"):
            transitions.move(run, to)
        assert run.status is status
    scene.session.rollback()


def _claim(scene: Any, run_id: UUID) -> None:
    runs.claim(scene.session, run_id, worker_id="x", lease_s=60, host="h", device="cpu")


def _as_holder(act: Callable[..., Any], **options: Any) -> Callable[[Any, UUID], None]:
    def of_run(scene: Any, run_id: UUID) -> None:
        run = runs.get(scene.session, run_id)
        act(scene.session, run_id, run.attempt, run.lease_token or uuid4(), **options)

    return of_run


ACTS: dict[str, tuple[Callable[[Any, UUID], Any], dict[Status, Status]]] = {
    "claim": (_claim, {Status.QUEUED: Status.RUNNING}),
    "cancel": (
        lambda scene, run_id: requests.request_cancel(scene.session, run_id),
        {
            Status.QUEUED: Status.CANCELLED,
            Status.PAUSED: Status.CANCELLED,
            Status.RUNNING: Status.CANCELLING,
        },
    ),
    "pause": (lambda scene, run_id: requests.request_pause(scene.session, run_id), {Status.QUEUED: Status.PAUSED}),
    "resume": (
        lambda scene, run_id: requests.resume(scene.session, run_id),
        {Status.PAUSED: Status.QUEUED, Status.FAILED: Status.QUEUED, Status.CANCELLED: Status.QUEUED},
    ),
    "give back": (
        _as_holder(leases.give_back, reason="going down"),
        {Status.RUNNING: Status.QUEUED, Status.CANCELLING: Status.CANCELLED},
    ),
    "succeed": (
        _as_holder(leases.finish, status=Status.SUCCEEDED),
        {Status.RUNNING: Status.SUCCEEDED, Status.CANCELLING: Status.CANCELLED},
    ),
    "fail for good": (
        _as_holder(leases.finish, status=Status.FAILED, failure_class=FailureClass.OUT_OF_MEMORY),
        {Status.RUNNING: Status.FAILED, Status.CANCELLING: Status.CANCELLED},
    ),
    "fail for now": (
        _as_holder(leases.finish, status=Status.FAILED, failure_class=FailureClass.STALLED),
        {Status.RUNNING: Status.QUEUED, Status.CANCELLING: Status.CANCELLED},
    ),
    "end as cancelled": (
        _as_holder(leases.finish, status=Status.CANCELLED),
        {Status.CANCELLING: Status.CANCELLED},
    ),
    "end as paused": (_as_holder(leases.finish, status=Status.PAUSED), {}),
    "reap": (lambda scene, _: leases.reap(scene.session), {}),
}


@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize("name", ACTS)
def test_every_act_moves_as_said_or_leaves_the_run_alone(scene: Any, name: str, status: Status) -> None:
    act, moves = ACTS[name]
    run_id = scene.put(status)
    try:
        act(scene, run_id)
    except (IllegalMove, LeaseLost):
        assert status not in moves
        scene.session.rollback()
    scene.session.commit()
    after = scene.status(run_id)
    assert after is moves.get(status, status)
    assert after is status or after in MOVES[status]


@given(st.lists(st.sampled_from(sorted(ACTS)), max_size=12))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_done_in_whatever_order_only_legal_moves_happen(scene: Any, names: list[str]) -> None:
    run_id = scene.put(Status.QUEUED)
    for name in names:
        before = scene.status(run_id)
        try:
            ACTS[name][0](scene, run_id)
            scene.session.commit()
        except (IllegalMove, LeaseLost):
            scene.session.rollback()
        after = scene.status(run_id)
        assert after is before or after in MOVES[before]
        run = runs.get(scene.session, run_id)
        open_attempts = [
            row for row in scene.session.query(AttemptRow).where(AttemptRow.run_id == run_id) if row.outcome is None
        ]
        assert len(open_attempts) == (after in (Status.RUNNING, Status.CANCELLING))
        assert (run.lease_token is not None) == bool(open_attempts)


@pytest.mark.parametrize(
    "nonsense",
    [
        {"status": Status.RUNNING},
        {"status": Status.FAILED},
        {"status": Status.SUCCEEDED},
        {"failure_class": FailureClass.TIMEOUT},
        {"attempts_charged": 1},
        {"total_steps": 0},
    ],
)
def test_the_database_itself_refuses_a_row_that_makes_no_sense(scene: Any, nonsense: dict[str, Any]) -> None:
    run_id = scene.put(Status.QUEUED)
    with pytest.raises(IntegrityError):
        scene.session.execute(update(RunRow).where(RunRow.id == run_id).values(**nonsense))
    scene.session.rollback()
