"""How did an attempt end? From what was asked, what the trainer said and how its process ended, to what is stored."""

import signal
from dataclasses import dataclass
from enum import StrEnum

from rotrnn_core.records import Divergence
from store.status import FailureClass, Status
from worker.messages import Failure


class Intent(StrEnum):
    """Why the supervisor ended the trainer; the first one stays."""

    CANCEL = "cancelled as asked"
    PAUSE = "paused as asked"
    SHUTDOWN = "the worker was told to stop"
    STALLED = "stalled"
    TIMEOUT = "past its deadline"
    REFUSED = "the store refused a record"
    LEASE_LOST = "the lease was lost"


@dataclass(frozen=True)
class Ending:
    """All that is known once the trainer has ended.

    Args:
        intent: What we wanted of it, if anything.
        detail: A sentence about that intent.
        code: Exit code, or minus the number of the signal that killed it.
        finished: Whether it said that all steps are done.
        divergence: What it said of a divergence.
        failure: What it said of an exception.
        memory_kills: Processes that the kernel killed for memory on this machine during the attempt.
    """

    intent: Intent | None
    detail: str
    code: int
    finished: bool = False
    divergence: Divergence | None = None
    failure: Failure | None = None
    memory_kills: int = 0


@dataclass(frozen=True)
class Finish:
    """End the attempt in this state."""

    status: Status
    failure_class: FailureClass | None = None
    reason: str | None = None
    divergence: Divergence | None = None


@dataclass(frozen=True)
class GiveBack:
    """Hand the run back uncharged."""

    reason: str


@dataclass(frozen=True)
class Abandon:
    """The run is another's, or over: write nothing."""

    reason: str


Verdict = Finish | GiveBack | Abandon


def judge(ending: Ending) -> Verdict:
    """What is to be stored: a result counts before what was asked, and that before how the process ended."""
    if ending.intent is Intent.LEASE_LOST:
        return Abandon(ending.detail)
    if ending.intent is Intent.REFUSED:
        return _failed(FailureClass.CODE_ERROR, ending.detail)
    if ending.finished:
        return Finish(Status.SUCCEEDED)
    if ending.divergence is not None:
        return Finish(Status.DIVERGED, divergence=ending.divergence)
    match ending.intent:
        case Intent.CANCEL:
            return Finish(Status.CANCELLED, reason=ending.detail)
        case Intent.PAUSE | Intent.SHUTDOWN:
            return GiveBack(ending.detail)
        case Intent.STALLED:
            return _failed(FailureClass.STALLED, ending.detail)
        case Intent.TIMEOUT:
            return _failed(FailureClass.TIMEOUT, ending.detail)
    if ending.failure is not None:
        return _failed(ending.failure.failure_class, ending.failure.reason)
    return _unasked(ending)


def _unasked(ending: Ending) -> Verdict:
    if ending.code in (0, -signal.SIGTERM):
        return GiveBack("the trainer was told to stop by somebody else")
    if ending.code == -signal.SIGKILL:
        if ending.memory_kills:
            return _failed(FailureClass.OUT_OF_MEMORY, "the kernel killed the trainer: the machine's memory was full")
        return _failed(FailureClass.WORKER_LOST, "the trainer was killed (SIGKILL)")
    if ending.code < 0:
        how = f"crashed with signal {-ending.code} ({signal.strsignal(-ending.code)})"
    else:
        how = f"ended with code {ending.code}"
    return _failed(FailureClass.CODE_ERROR, f"the trainer {how}; its last words are in the log")


def _failed(failure_class: FailureClass, reason: str) -> Finish:
    return Finish(Status.FAILED, failure_class, reason)
