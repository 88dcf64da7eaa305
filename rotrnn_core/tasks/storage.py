"""How does a data set lie on disk? Once per name, seed, sizes and protocol; complete or not there; memory-mapped.

Whoever needs a data set first makes it in a temporary folder and renames that into place; a lock file lets one
process do so while the others wait.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from rotrnn_core.tasks.dataset import SPLITS, Array, Dataset, Sequences

PARTS = ("tokens", "offsets", "labels")


class DataMissing(Exception):
    """The data of a task cannot be had; the text says what was tried and what to do."""


def stored(data_dir: Path, key: str, make: Callable[[], Dataset]) -> Dataset:
    """The data set that lies under `key`, made first if it is not there yet.

    Args:
        data_dir: Folder of all data sets; made if absent.
        key: Name of the data set's own folder; it holds all that the content depends on.
        make: Computes the data set.

    Raises:
        DataMissing: The folder cannot be written, or what lies there is damaged.
    """
    folder = data_dir / key
    try:
        if not folder.exists():
            data_dir.mkdir(parents=True, exist_ok=True)
            with _lock(data_dir / f".{key}.lock"):
                if not folder.exists():
                    _write(make(), folder)
    except OSError as error:
        raise DataMissing(f"cannot prepare {key} in {data_dir}: {error}; give a folder that can be written") from error
    return _read(folder)


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _write(dataset: Dataset, folder: Path) -> None:
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for split in SPLITS:
            for part in PARTS:
                with (unfinished / f"{split}.{part}.npy").open("wb") as file:
                    np.save(file, getattr(getattr(dataset, split), part), allow_pickle=False)
                    file.flush()
                    os.fsync(file.fileno())
        unfinished.chmod(0o755)
        unfinished.rename(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _read(folder: Path) -> Dataset:
    try:
        return Dataset(**{split: _read_split(folder, split) for split in SPLITS})
    except (OSError, ValueError, EOFError) as error:
        raise DataMissing(f"{folder} is damaged ({error}); delete it to have it made anew") from error


def _read_split(folder: Path, split: str) -> Sequences:
    tokens, offsets, labels = (_map(folder / f"{split}.{part}.npy") for part in PARTS)
    if len(offsets) != len(labels) + 1 or offsets[-1] != len(tokens):
        raise ValueError(f"the parts of the {split} split do not fit together")
    return Sequences(tokens, offsets, labels)


def _map(path: Path) -> Array:
    mapped: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    return mapped
