"""How does a data set lie on disk? Once per content and protocol; complete or not there; memory-mapped.

Whoever needs a data set first makes it in a temporary folder and renames that into place; a lock file lets one
process do so while the others wait. The pieces of a split are written as they come, so that a data set may be larger
than the memory. A file about.json in each folder says how the arrays are to be read, and their hashes.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from rotrnn_core.tasks.dataset import MEASURED, SPLITS, Array, Dataset, Scale, Sequences
from rotrnn_core.tasks.errors import BadData, DataMissing

FORMAT = 2
"""Changes whenever folders written before can no longer be read."""
PARTS = ("inputs", "offsets", "labels")
ABOUT = "about.json"
BLOCK = 1 << 22

Pieces = Mapping[str, Iterable[Sequences]]
"""The examples of each split, in order, a piece at a time."""


def pieces_of(dataset: Dataset) -> Pieces:
    """A data set that lies in memory, as one piece per split."""
    return {split: [getattr(dataset, split)] for split in SPLITS}


def stored(data_dir: Path, key: str, make: Callable[[], Pieces]) -> Dataset:
    """The data set that lies under `key`, made first if it is not there yet.

    Args:
        data_dir: Folder of all data sets; made if absent.
        key: Name of the data set's own folder; it holds all that the content depends on.
        make: Computes the data set.

    Raises:
        DataMissing: The folder cannot be written, or what lies there is damaged.
    """
    folder = data_dir / f"{key}-f{FORMAT}"
    if not folder.exists():
        with writing(data_dir, folder.name):
            if not folder.exists():
                with unfinished(folder) as place:
                    write(make(), place)
                    place.rename(folder)
    return read(folder)


@contextlib.contextmanager
def writing(data_dir: Path, name: str) -> Iterator[None]:
    """One process at a time makes what has this name.

    Raises:
        DataMissing: The disk is full, or the folder cannot be written.
    """
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        with (data_dir / f".{name}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
    except OSError as error:
        if error.filename is not None and not Path(error.filename).absolute().is_relative_to(data_dir.absolute()):
            raise BadData(error.filename, f"cannot be read: {error.strerror}") from error
        text = f"cannot prepare {name} in {data_dir}: {error}; give a folder that can be written and has room"
        raise DataMissing(text) from error


@contextlib.contextmanager
def unfinished(folder: Path) -> Iterator[Path]:
    """A temporary folder beside `folder`, to be renamed or else deleted."""
    place = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        place.chmod(0o755)
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def write(pieces: Pieces, place: Path) -> str:
    """Write a data set into an existing folder and flush it to disk.

    Returns:
        SHA-256 of the hashes of all its arrays: the name of its content.
    """
    about: dict[str, Any] = {"format": FORMAT, "documents": 1, "scale": None, "sha256": {}}
    for split in SPLITS:
        _write_split(pieces[split], place, split, about)
    if about["scale"] == asdict(MEASURED):
        about["scale"] = asdict(_measured(_map(place / "train.inputs.npy")))
    hashes = about["sha256"]
    with (place / ABOUT).open("w", encoding="utf-8") as file:
        json.dump(about, file, indent=1, sort_keys=True)
        _flush(file)
    return _content_name(hashes)


def _write_split(pieces: Iterable[Sequences], place: Path, split: str, about: dict[str, Any]) -> None:
    lengths: list[Array] = []
    labels: list[Array] = []
    with (place / f"{split}.inputs.npy").open("w+b") as file:
        header: Array | None = None
        steps = 0
        for piece in pieces:
            if header is None:
                header = piece.inputs
                _write_header(file, header, 0)
                about["documents"] = piece.documents
                about["scale"] = piece.scale and asdict(piece.scale)
            assert piece.inputs.dtype == header.dtype
            file.write(np.ascontiguousarray(piece.inputs).data)
            steps += len(piece.inputs)
            lengths.append(np.diff(piece.offsets))
            labels.append(piece.labels)
        if header is None:
            raise DataMissing(f"the {split} split holds no examples")
        file.seek(0)
        _write_header(file, header, steps)
        _flush(file)
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
    for part, array in (("offsets", offsets), ("labels", np.concatenate(labels))):
        with (place / f"{split}.{part}.npy").open("wb") as file:
            np.save(file, array, allow_pickle=False)
            _flush(file)
    for part in PARTS:
        about["sha256"][f"{split}.{part}.npy"] = _sha256(place / f"{split}.{part}.npy")


def _measured(frames: Array) -> Scale:
    """Mean and deviation of each channel, read a block at a time."""
    total = squares = np.zeros(frames.shape[1])
    for begin in range(0, len(frames), BLOCK):
        block = frames[begin : begin + BLOCK].astype(np.float64)
        total, squares = total + block.sum(axis=0), squares + (block**2).sum(axis=0)
    mean = total / len(frames)
    deviation = np.sqrt(np.maximum(squares / len(frames) - mean**2, 1e-12))
    return Scale(tuple(mean.tolist()), tuple(deviation.tolist()))


def _write_header(file: BinaryIO, array: Array, steps: int) -> None:
    """numpy leaves room for the first axis to grow, so that the header can be written anew in place."""
    described = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(file, described | {"shape": (steps, *array.shape[1:]), "fortran_order": False})


def _flush(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _content_name(hashes: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()


def read(folder: Path) -> Dataset:
    """Map a data set into memory.

    Raises:
        DataMissing: It is damaged.
    """
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        scale = about["scale"] and Scale(tuple(about["scale"]["mean"]), tuple(about["scale"]["deviation"]))
        return Dataset(**{split: _read_split(folder, split, about["documents"], scale) for split in SPLITS})
    except (OSError, ValueError, EOFError, KeyError, TypeError) as error:
        raise _damaged(folder, str(error)) from error


def _read_split(folder: Path, split: str, documents: int, scale: Scale | None) -> Sequences:
    inputs, offsets, labels = (_map(folder / f"{split}.{part}.npy") for part in PARTS)
    if len(offsets) != documents * len(labels) + 1 or offsets[-1] != len(inputs):
        raise ValueError(f"the parts of the {split} split do not fit together")
    return Sequences(inputs, offsets, labels, documents, scale)


def _map(path: Path) -> Array:
    mapped: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    return mapped


def verify(folder: Path) -> str:
    """Read every byte of a data set and hold it against the hashes taken when it was written.

    Returns:
        The name of its content, as `write` gave it.

    Raises:
        DataMissing: It is damaged.
    """
    read(folder)
    hashes = json.loads((folder / ABOUT).read_text(encoding="utf-8"))["sha256"]
    for name, expected in hashes.items():
        found = _sha256(folder / name)
        if found != expected:
            raise _damaged(folder, f"{name} has SHA-256 {found}, and had {expected} when it was written")
    return _content_name(hashes)


def _damaged(folder: Path, why: str) -> BadData:
    return BadData(folder, f"damaged ({why}); delete it to have it made anew")
