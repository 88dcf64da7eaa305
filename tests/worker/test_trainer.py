"""Does a trainer say that it is at work where no step ends, and is that taken for a sign of life?"""

import math
import os

from rotrnn_core.training import Control
from worker import trainer
from worker.account import Account
from worker.messages import Log, Progress, from_line, to_line
from worker.trainer_process import Said


def test_an_evaluation_that_is_at_work_says_so_now_and_then() -> None:
    reading, writing = os.pipe()
    control = trainer.control_that_tells(trainer.Pipe(writing), every_s=-1.0)
    assert isinstance(control, Control)
    control.step = 7
    control.working()
    hurried = trainer.control_that_tells(trainer.Pipe(writing), every_s=3600.0)
    hurried.working()
    os.close(writing)
    with os.fdopen(reading) as heard:
        assert [from_line(line) for line in heard] == [Progress(0), Progress(7), Progress(7)]


def test_a_word_of_the_same_step_is_a_sign_of_life_and_what_is_printed_is_none() -> None:
    account = Account()
    for message, counts in ((Progress(7), True), (Progress(7), True), (Log("info", "still here"), False)):
        account.progress_at = -math.inf
        account.hear(Said("messages", to_line(message)))
        assert (account.progress_at > -math.inf) == counts
    account.hear(Said("stdout", "still here"))
    assert account.progress_at == -math.inf
