"""Which states can a run be in, which moves are legal, and which failures are tried again?"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final


class Status(StrEnum):
    """The state of a run."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    DIVERGED = "diverged"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL: Final = frozenset({Status.SUCCEEDED, Status.DIVERGED, Status.FAILED, Status.CANCELLED})
"""States that change only by an explicit resume, if at all."""

LEASED: Final = frozenset({Status.RUNNING, Status.CANCELLING})
"""States in which one worker holds the lease."""

MOVES: Final[dict[Status, frozenset[Status]]] = {
    Status.QUEUED: frozenset({Status.RUNNING, Status.PAUSED, Status.CANCELLED, Status.FAILED}),
    Status.RUNNING: frozenset(
        {Status.QUEUED, Status.PAUSED, Status.CANCELLING, Status.SUCCEEDED, Status.DIVERGED, Status.FAILED}
    ),
    Status.PAUSED: frozenset({Status.QUEUED, Status.CANCELLED}),
    Status.CANCELLING: frozenset({Status.CANCELLED}),
    Status.SUCCEEDED: frozenset(),
    Status.DIVERGED: frozenset(),
    Status.FAILED: frozenset({Status.QUEUED}),
    Status.CANCELLED: frozenset({Status.QUEUED}),
}
"""The one list of legal moves: from a state to each state that may follow it."""


def sources(to: Status) -> frozenset[Status]:
    """The states from which `to` may be entered."""
    return frozenset(status for status, targets in MOVES.items() if to in targets)


class Outcome(StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "succeeded"
    DIVERGED = "diverged"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PAUSED = "paused"
    GAVE_BACK = "gave_back"


class FailureClass(StrEnum):
    """Why an attempt failed."""

    CODE_ERROR = "code_error"
    OUT_OF_MEMORY = "out_of_memory"
    WORKER_LOST = "worker_lost"
    STALLED = "stalled"
    TIMEOUT = "timeout"
    BAD_CONFIG = "bad_config"
    DATA_MISSING = "data_missing"


@dataclass(frozen=True)
class Retry:
    """How a failure is tried again: after first_delay_s, each further time growth times later, at most most_s."""

    first_delay_s: float
    growth: float
    most_s: float

    def delay_s(self, failures: int) -> float:
        """Seconds to wait after so many failures, counted from 1."""
        return float(min(self.first_delay_s * self.growth ** (failures - 1), self.most_s))


RETRIES: Final[dict[FailureClass, Retry | None]] = {
    FailureClass.CODE_ERROR: None,
    FailureClass.OUT_OF_MEMORY: None,
    FailureClass.WORKER_LOST: Retry(first_delay_s=1.0, growth=4.0, most_s=300.0),
    FailureClass.STALLED: Retry(first_delay_s=5.0, growth=4.0, most_s=600.0),
    FailureClass.TIMEOUT: None,
    FailureClass.BAD_CONFIG: None,
    FailureClass.DATA_MISSING: None,
}
"""The retry policy: None ends the run, a Retry puts it back in the queue while its attempt budget lasts."""


class Priority(IntEnum):
    """Three named levels; the larger number is served first."""

    LOW = 1
    NORMAL = 5
    HIGH = 9
