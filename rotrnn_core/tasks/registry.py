"""Which tasks can be loaded? The one registry: from a task's configuration to its data."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from rotrnn_core.catalogue import TASKS
from rotrnn_core.config import TaskConfig
from rotrnn_core.tasks import (
    cifar,
    contours,
    digits,
    fashion_mnist,
    listops,
    listops_release,
    pathfinder,
    release,
    retrieval,
    sequential_mnist,
    speech_commands,
    text,
)
from rotrnn_core.tasks.dataset import SPLITS, Dataset
from rotrnn_core.tasks.errors import DataMissing
from rotrnn_core.tasks.release import Release
from rotrnn_core.tasks.storage import pieces_of, stored

LENGTHS = {"listops": range(501, 2000), "listops-short": range(20, 201)}
"""Lengths that a tree may have, by task."""

GENERATED: dict[str, tuple[int, Callable[..., Dataset]]] = {
    **{name: (listops.PROTOCOL, partial(listops.generate, lengths)) for name, lengths in LENGTHS.items()},
    "contours": (contours.PROTOCOL, contours.generate),
    "digits": (digits.PROTOCOL, digits.generate),
}
"""Protocol version and maker of the tasks whose examples come from a seed."""

RELEASES: dict[str, Release] = {
    "listops": listops_release.RELEASE,
    "text": text.RELEASE,
    "retrieval": retrieval.RELEASE,
    "image": cifar.GRAY_RELEASE,
    "image-colour": cifar.COLOUR_RELEASE,
    "pathfinder": pathfinder.RELEASE,
    "path-x": pathfinder.LARGE_RELEASE,
    "speech-commands": speech_commands.RELEASE,
    "sequential-mnist": sequential_mnist.RELEASE,
    "fashion-mnist": fashion_mnist.RELEASE,
}
"""The tasks whose examples are published files."""


def names() -> list[str]:
    """Every task."""
    return list(TASKS)


def load(task: TaskConfig, data_dir: Path) -> Dataset:
    """The data of a task, made or prepared on first use.

    Raises:
        DataMissing: It cannot be had.
    """
    sizes = {split: task.size(split) for split in SPLITS}
    if task.release or task.name not in GENERATED:
        return _first(task, release.load(task.name, RELEASES[task.name], data_dir), sizes)
    protocol, generate = GENERATED[task.name]
    numbers = "-".join(str(size) for size in sizes.values())
    key = f"{task.name}-v{protocol}-seed{task.data_seed}-{numbers}"
    return stored(data_dir, key, lambda: pieces_of(generate(task.data_seed, **sizes)))


def _first(task: TaskConfig, whole: Dataset, sizes: dict[str, int]) -> Dataset:
    """The first examples of each split, as many as the run wants."""
    splits = {}
    for split, size in sizes.items():
        examples = getattr(whole, split)
        if len(examples) < size:
            raise DataMissing(
                f"the {split} split of {task.name} holds {len(examples):,} examples and the run wants {size:,}: "
                f"import the whole release, or set task.{split}_size"
            )
        splits[split] = examples if len(examples) == size else examples.first(size)
    return Dataset(**splits)
