"""Has a run learned nothing? Whether its loss stays at that of a guess; needs no torch."""

import math

TOLERANCE = 0.01
"""A loss within 1% of ln(classes) is that of a guess."""


def is_stuck(
    *, steps: int, warmup_steps: int, evaluate_every: int, classes: int, step: int, validation_loss: float | None
) -> bool | None:
    """Whether a run is stuck: late in training its validation loss is still that of a uniform guess.

        late:   the last evaluation came after the warm-up and half of the steps
        stuck:  |loss / ln(classes) - 1| <= 0.01 there

    Args:
        steps: Updates of the whole run.
        warmup_steps: Those over which the learning rate rises.
        evaluate_every: Updates between two evaluations; there is one after the last update too.
        classes: Classes of the task.
        step: Completed updates.
        validation_loss: Mean cross-entropy of the last evaluation, in nats; absent where there was none.

    Returns:
        None while it is too early to say.
    """
    evaluated_at = step if step >= steps else step - step % evaluate_every
    if validation_loss is None or evaluated_at < max(warmup_steps, steps / 2):
        return None
    return abs(validation_loss / math.log(classes) - 1) <= TOLERANCE
