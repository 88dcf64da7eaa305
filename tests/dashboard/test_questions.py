"""Is an answer about a sweep kept exactly while nothing can change it?"""

import dataclasses
from datetime import UTC, datetime

import pytest

from client import Sweep
from dashboard.questions import SETTLED_S, Question, about, moves

ENDED = Sweep("s", None, datetime(2026, 7, 1, tzinfo=UTC), {}, {}, 3, {"succeeded": 2, "diverged": 1})


def asked(sweep: Sweep | None) -> Question[int]:
    return about(sweep, ("number",), lambda bench: 1, fresh_s=2.0)


def of(**counts: int) -> Sweep:
    return dataclasses.replace(ENDED, total=sum(counts.values()), counts=counts)


def test_what_ended_runs_measured_is_asked_once() -> None:
    assert not moves(ENDED)
    assert asked(ENDED).fresh_s == SETTLED_S
    assert asked(ENDED).name == asked(dataclasses.replace(ENDED, name="renamed")).name


@pytest.mark.parametrize("state", ["queued", "running", "cancelling"])
def test_while_a_run_moves_the_answer_ages_as_before(state: str) -> None:
    moving = of(succeeded=2, **{state: 1})
    assert moves(moving)
    assert asked(moving).fresh_s == asked(None).fresh_s == 2.0
    assert asked(moving).name == asked(of(succeeded=1, **{state: 2})).name


def test_a_sweep_that_has_changed_is_asked_about_anew() -> None:
    names = {asked(sweep).name for sweep in (ENDED, of(succeeded=3), of(succeeded=2), of(succeeded=2, queued=1), None)}
    assert len(names) == 5
