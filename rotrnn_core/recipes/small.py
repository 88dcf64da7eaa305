"""What can a processor train in minutes? This project's own small settings; none stands beside a published number."""

from typing import Any

from rotrnn_core.catalogue import TASKS, TaskInfo
from rotrnn_core.config import RunConfig
from rotrnn_core.recipes.recipe import Recipe

SOURCE = "this project's own choice, for machines without a GPU; not comparable with published numbers"

SHORT_TASK: dict[str, Any] = {"name": "listops-short", "validation_size": 400}
SHORT_MODEL: dict[str, Any] = {"d_model": 32, "d_state": 32, "n_layers": 2}
SHORT_TRAINING: dict[str, Any] = {
    "steps": 200,
    "batch_size": 16,
    "learning_rate": 1e-2,
    "recurrence_learning_rate": 5e-3,
    "warmup_steps": 20,
    "log_every": 5,
    "evaluate_every": 100,
    "checkpoint_every": 100,
}
SHORT_PROBE: dict[str, Any] = {"every": 10, "batch_size": 16, "positions": 32}
SHORT_CELLS: dict[str, dict[str, Any]] = {
    "rotrnn": {"name": "rotrnn", "n_heads": 8},
    "lru-learned": {"name": "lru", "normaliser": "learned"},
    "lru-tied": {"name": "lru", "normaliser": "tied"},
}
"""Settings of the short comparison, equal for all cells, chosen for minutes on two processor cores."""

STEPS_IN_A_BATCH = 25_088
"""Steps of all sequences of a batch together, at most: 32 pictures of 784 pixels."""
SMALL_CELLS: dict[str, dict[str, Any]] = {"rotrnn": {"name": "rotrnn", "n_heads": 16}, "lru": {"name": "lru"}}
SMALL_MODEL: dict[str, Any] = {"d_model": 64, "d_state": 64, "n_layers": 2}
SMALL_UPDATES = 1_100


def recipes() -> list[Recipe]:
    """The short comparison, and every other task with RotRNN and LRU."""
    short = [_listops_short(label) for label in SHORT_CELLS]
    others = [task for task in TASKS.values() if task.name != "listops-short"]
    return [*short, *(_small(task, cell) for task in others for cell in SMALL_CELLS)]


def _listops_short(label: str) -> Recipe:
    config = RunConfig.from_dict(
        {
            "task": SHORT_TASK,
            "model": {"cell": SHORT_CELLS[label], **SHORT_MODEL},
            "training": SHORT_TRAINING,
            "probe": SHORT_PROBE,
        }
    )
    title = f"{config.model.cell.title} ({label}) on ListOps short"
    return Recipe(f"listops-short/{label}", title, SOURCE, "U", config)


def _small(task: TaskInfo, cell: str) -> Recipe:
    batch_size = max(2, min(32, STEPS_IN_A_BATCH // (task.longest * task.documents)))
    train_size = min(6_000, batch_size * SMALL_UPDATES, task.train_size)
    config = RunConfig.from_dict(
        {
            "task": {
                "name": task.name,
                "train_size": train_size,
                "validation_size": min(500, train_size // 4, task.validation_size),
                "test_size": min(1_000, train_size // 2, task.test_size),
            },
            "model": {"cell": SMALL_CELLS[cell], **SMALL_MODEL},
            "training": {
                "steps": SMALL_UPDATES,
                "batch_size": batch_size,
                "learning_rate": 1e-2,
                "recurrence_learning_rate": 3e-3,
                "warmup_steps": 20,
                "evaluate_every": SMALL_UPDATES // 4,
                "checkpoint_every": SMALL_UPDATES // 4,
            },
            "probe": {"every": SMALL_UPDATES // 10, "batch_size": min(8, batch_size), "positions": 32},
        }
    )
    title = f"{config.model.cell.title} on {task.title}, small"
    return Recipe(f"{task.name}/{cell}-small", title, SOURCE, "U", config)
