"""Which tasks can be loaded? From a task's configuration to its data."""

from pathlib import Path

from rotrnn_core.config import TaskConfig
from rotrnn_core.tasks import listops
from rotrnn_core.tasks.dataset import SPLITS, Dataset
from rotrnn_core.tasks.storage import stored

LENGTHS = {"listops": range(501, 2000), "listops-short": range(20, 201)}
"""Lengths that a tree may have, by task."""


def load(task: TaskConfig, data_dir: Path) -> Dataset:
    """The data of a task, made on first use.

    Raises:
        DataMissing: It cannot be had.
    """
    sizes = {split: task.size(split) for split in SPLITS}
    numbers = "-".join(str(size) for size in sizes.values())
    key = f"{task.name}-v{listops.PROTOCOL}-seed{task.data_seed}-{numbers}"
    return stored(data_dir, key, lambda: listops.generate(LENGTHS[task.name], task.data_seed, **sizes))
