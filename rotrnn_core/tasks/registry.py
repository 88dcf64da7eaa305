"""Which tasks can be loaded? The one registry: from a task's configuration to its data.

A task's own module is imported when the task is asked for.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from rotrnn_core.catalogue import TASKS
from rotrnn_core.config import TaskConfig
from rotrnn_core.tasks.dataset import SPLITS, Dataset
from rotrnn_core.tasks.errors import DataMissing
from rotrnn_core.tasks.release import Release, is_here
from rotrnn_core.tasks.release import load as load_release
from rotrnn_core.tasks.storage import pieces_of, stored

Entry = TypeVar("Entry")


class OnDemand(MutableMapping[str, Entry]):
    """Entries by task, each made by its function when it is first asked for."""

    def __init__(self, makers: Mapping[str, Callable[[], Entry]]) -> None:
        self._makers = dict(makers)

    def __getitem__(self, name: str) -> Entry:
        return self._makers[name]()

    def __setitem__(self, name: str, entry: Entry) -> None:
        self._makers[name] = lambda: entry

    def __delitem__(self, name: str) -> None:
        del self._makers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


def _module(name: str) -> Any:
    return import_module(f"rotrnn_core.tasks.{name}")


def _trees(lengths: range) -> tuple[int, Callable[..., Dataset]]:
    listops = _module("listops")
    return listops.PROTOCOL, partial(listops.generate, lengths)


def _generated(name: str) -> tuple[int, Callable[..., Dataset]]:
    return _module(name).PROTOCOL, _module(name).generate


LENGTHS = {"listops": range(501, 2000), "listops-short": range(20, 201)}
"""Lengths that a tree may have, by task."""

GENERATED = OnDemand(
    {name: partial(_trees, lengths) for name, lengths in LENGTHS.items()}
    | {name: partial(_generated, name) for name in ("contours", "digits")}
)
"""Protocol version and maker of the tasks whose examples come from a seed."""

RELEASES: OnDemand[Release] = OnDemand(
    {
        "listops": lambda: _module("listops_release").RELEASE,
        "text": lambda: _module("text").RELEASE,
        "retrieval": lambda: _module("retrieval").RELEASE,
        "image": lambda: _module("cifar").GRAY_RELEASE,
        "image-colour": lambda: _module("cifar").COLOUR_RELEASE,
        "pathfinder": lambda: _module("pathfinder").RELEASE,
        "path-x": lambda: _module("pathfinder").LARGE_RELEASE,
        "speech-commands": lambda: _module("speech_commands").RELEASE,
        "sequential-mnist": lambda: _module("sequential_mnist").RELEASE,
        "fashion-mnist": lambda: _module("fashion_mnist").RELEASE,
    }
)
"""The tasks whose examples are published files."""


def names() -> list[str]:
    """Every task."""
    return list(TASKS)


def at_hand(data_dir: Path) -> list[str]:
    """The tasks whose published files are on this machine, prepared or not; what is damaged is not there."""
    return sorted(name for name in RELEASES if is_here(name, RELEASES[name], data_dir))


def load(task: TaskConfig, data_dir: Path) -> Dataset:
    """The data of a task, made or prepared on first use.

    Raises:
        DataMissing: It cannot be had.
    """
    sizes = {split: task.size(split) for split in SPLITS}
    if task.release or task.name not in GENERATED:
        return _first(task, load_release(task.name, RELEASES[task.name], data_dir), sizes)
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
