"""What follows of a run, and is stored nowhere? Its network's cost, whether it is stuck, or below its task's floor."""

import functools
import json

from rotrnn_core.config import TASKS, ConfigError, RunConfig
from rotrnn_core.cost import Cost, cost
from rotrnn_core.stuck import is_stuck
from store.tables import RunRow


def cost_of(row: RunRow) -> Cost | None:
    """What a run's network needs; None where its configuration is of a version that can no longer be read."""
    return _cost(json.dumps(row.config["model"]), row.task)


def stuck(row: RunRow, validation_loss: float | None) -> bool | None:
    """Whether a run is stuck by its last validation loss; None while it is too early to say."""
    if row.task not in TASKS:
        return None
    training = row.config["training"]
    return is_stuck(
        steps=row.total_steps,
        warmup_steps=training["warmup_steps"],
        evaluate_every=training["evaluate_every"],
        classes=TASKS[row.task].classes,
        step=row.step,
        validation_loss=validation_loss,
    )


def below_floor(row: RunRow, test_accuracy: float | None) -> bool | None:
    """Whether a run was tested below its task's floor; None where it was not tested, or no floor is known."""
    floor = TASKS[row.task].floor if row.task in TASKS else None
    return None if floor is None or test_accuracy is None else not test_accuracy >= floor


@functools.lru_cache(maxsize=1024)
def _cost(model: str, task: str) -> Cost | None:
    try:
        return cost(RunConfig.part_from_dict("model", json.loads(model)), TASKS[task])
    except (ConfigError, KeyError):
        return None
