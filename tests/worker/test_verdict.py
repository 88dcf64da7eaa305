"""Does every ending get its verdict?"""

import signal

import pytest

from rotrnn_core.records import Divergence
from store.status import FailureClass, Status
from worker.messages import Failure
from worker.verdict import Abandon, Ending, Finish, GiveBack, Intent, judge

DIVERGENCE = Divergence(3, 1, "gradient")
FAILURE = Failure(FailureClass.CODE_ERROR, "x")


@pytest.mark.parametrize("intent", [None, Intent.CANCEL, Intent.PAUSE, Intent.SHUTDOWN, Intent.STALLED, Intent.TIMEOUT])
def test_a_result_counts_whatever_was_asked_and_however_the_process_ended(intent: Intent | None) -> None:
    assert judge(Ending(intent, "", -9, finished=True)) == Finish(Status.SUCCEEDED)
    assert judge(Ending(intent, "", 1, divergence=DIVERGENCE)) == Finish(Status.DIVERGED, divergence=DIVERGENCE)


def test_nothing_counts_once_the_lease_is_lost() -> None:
    ending = Ending(Intent.LEASE_LOST, "another", -9, finished=True, divergence=DIVERGENCE, failure=FAILURE)
    assert judge(ending) == Abandon("another")


def test_a_result_with_a_refused_record_is_none() -> None:
    verdict = judge(Ending(Intent.REFUSED, "no", 0, finished=True))
    assert verdict == Finish(Status.FAILED, FailureClass.CODE_ERROR, "no")


@pytest.mark.parametrize("code", [0, 1, -signal.SIGTERM, -signal.SIGKILL])
def test_what_was_asked_explains_any_end(code: int) -> None:
    assert judge(Ending(Intent.CANCEL, "c", code, failure=FAILURE)) == Finish(Status.CANCELLED, reason="c")
    assert judge(Ending(Intent.PAUSE, "p", code, failure=FAILURE)) == GiveBack("p")
    assert judge(Ending(Intent.SHUTDOWN, "s", code, failure=FAILURE)) == GiveBack("s")


@pytest.mark.parametrize(
    ("code", "memory_kills", "expected"),
    [
        (-signal.SIGKILL, 0, FailureClass.WORKER_LOST),
        (-signal.SIGKILL, 1, FailureClass.OUT_OF_MEMORY),
        (-signal.SIGABRT, 1, FailureClass.CODE_ERROR),
        (-40, 0, FailureClass.CODE_ERROR),
        (1, 0, FailureClass.CODE_ERROR),
    ],
)
def test_an_unasked_end_without_a_word_goes_by_its_code(code: int, memory_kills: int, expected: FailureClass) -> None:
    verdict = judge(Ending(None, "", code, memory_kills=memory_kills))
    assert isinstance(verdict, Finish)
    assert verdict.failure_class is expected
    assert verdict.reason


@pytest.mark.parametrize("code", [0, -signal.SIGTERM])
def test_a_trainer_that_somebody_else_stopped_goes_back_to_the_queue(code: int) -> None:
    assert isinstance(judge(Ending(None, "", code)), GiveBack)
