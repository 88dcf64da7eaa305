"""Is a run that learned nothing told from one that is young, slow or broken?"""

import math

import pytest

from rotrnn_core.stuck import is_stuck

GUESS = math.log(10)


def verdict(step: int, loss: float | None, **run: int) -> bool | None:
    """Of a run of a thousand steps with ten classes."""
    settings = {"steps": 1000, "warmup_steps": 100, "evaluate_every": 100, "classes": 10, **run}
    return is_stuck(step=step, validation_loss=loss, **settings)


@pytest.mark.parametrize(
    ("loss", "stuck"),
    [
        (GUESS, True),
        (1.0099 * GUESS, True),
        (0.9901 * GUESS, True),
        (1.0101 * GUESS, False),
        (0.9899 * GUESS, False),
        (0.0, False),
        (math.inf, False),
        (math.nan, False),
    ],
)
def test_a_loss_within_one_per_cent_of_a_guess_is_stuck(loss: float, stuck: bool) -> None:
    assert verdict(1000, loss) is stuck


@pytest.mark.parametrize(("step", "said"), [(0, None), (499, None), (500, True), (599, True), (1000, True)])
def test_nothing_is_said_before_half_of_the_steps(step: int, said: bool | None) -> None:
    assert verdict(step, GUESS) is said


def test_nothing_is_said_during_a_long_warm_up() -> None:
    assert verdict(799, GUESS, warmup_steps=800) is None
    assert verdict(800, GUESS, warmup_steps=800) is True


def test_what_counts_is_where_the_loss_was_measured_and_not_how_far_the_run_is() -> None:
    assert verdict(799, GUESS, evaluate_every=400) is None
    assert verdict(800, GUESS, evaluate_every=400) is True
    assert verdict(1000, GUESS, evaluate_every=400) is True


def test_without_an_evaluation_nothing_is_said() -> None:
    assert verdict(1000, None) is None


def test_the_guess_is_that_of_the_tasks_own_classes() -> None:
    assert verdict(1000, math.log(2), classes=2) is True
    assert verdict(1000, GUESS, classes=2) is False
