"""Do a supervisor and its trainer understand each other?"""

import math

import pytest

from rotrnn_core.records import Checkpoint, Divergence, Finished, Loss
from store.status import FailureClass
from worker.messages import (
    Failure,
    HandedBack,
    Job,
    Log,
    Message,
    Progress,
    StoredCheckpoint,
    from_line,
    to_line,
)


@pytest.mark.parametrize(
    "message",
    [
        Progress(3),
        Log("warning", 'a "quoted" line\nand another \u2028 \x00'),
        Failure(FailureClass.STALLED, "because"),
        HandedBack("told to stop"),
        Finished(9),
        Divergence(3, None, "gradient"),
        Checkpoint(3, "/a/b", "00", 12),
        Loss(1, 0.1, math.inf, -math.inf, 1e-300, 5e-324, -0.0),
    ],
)
def test_a_message_comes_back_from_its_one_line(message: Message) -> None:
    line = to_line(message)
    assert "\n" not in line
    assert from_line(line) == message


@pytest.mark.parametrize(
    "line",
    ["", "what?", "[]", "3", "{}", '{"record":"Progress"}', '{"record":"Log","level":"info"', '{"record":"Nothing"}'],
)
def test_anything_else_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        from_line(line)


def test_a_job_comes_back_from_its_json() -> None:
    job = Job({"a": {"b": [1, None]}}, "/data", "/checkpoints", (StoredCheckpoint(3, "/p", "00"),), 2)
    assert Job.from_json(job.to_json()) == job
