"""Do the list of moves and the retry policy hold together?"""

from store.status import LEASED, MOVES, RETRIES, TERMINAL, FailureClass, Status, sources


def test_every_state_has_its_moves_and_can_be_reached_from_queued() -> None:
    assert set(MOVES) == set(Status)
    reached = {Status.QUEUED}
    while grown := {to for status in reached for to in MOVES[status]} - reached:
        reached |= grown
    assert reached == set(Status)


def test_an_ended_run_moves_only_back_into_the_queue_and_a_result_never() -> None:
    for status in TERMINAL:
        assert MOVES[status] <= {Status.QUEUED}
    assert not MOVES[Status.SUCCEEDED]
    assert not MOVES[Status.DIVERGED]


def test_only_the_queue_leads_into_a_lease_and_cancelling_leads_only_out() -> None:
    assert sources(Status.RUNNING) == {Status.QUEUED}
    assert MOVES[Status.CANCELLING] == {Status.CANCELLED}
    assert {Status.RUNNING, Status.CANCELLING} == LEASED


def test_every_failure_class_has_a_policy_and_delays_grow_up_to_a_limit() -> None:
    assert set(RETRIES) == set(FailureClass)
    tried_again = {failure_class for failure_class, retry in RETRIES.items() if retry is not None}
    assert tried_again == {FailureClass.WORKER_LOST, FailureClass.STALLED}
    for retry in RETRIES.values():
        if retry is not None:
            delays = [retry.delay_s(failures) for failures in range(1, 20)]
            assert delays == sorted(delays)
            assert delays[0] < delays[1]
            assert delays[-1] == retry.most_s
