"""What are Image and Image in colour? CIFAR-10, a pixel per step, row by row.

The binary release has records of a label and 3 x 1024 bytes: all reds, all greens, all blues. Gray is the luma of
ITU-R BT.601, (299 red + 587 green + 114 blue) / 1000. The last tenth of the train batches is the validation split.

Source: Krizhevsky, Learning multiple layers of features from tiny images, 2009; Long Range Arena, arXiv:2011.04006.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from rotrnn_core.tasks.dataset import Array, Scale, Sequences, of_one_length
from rotrnn_core.tasks.download import Download
from rotrnn_core.tasks.errors import BadData
from rotrnn_core.tasks.release import Release
from rotrnn_core.tasks.storage import Pieces

PIXELS = 1024
RECORD = 1 + 3 * PIXELS
CLASSES = 10
TRAIN_FILES = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
GRAY = Scale(mean=(122.6,), deviation=(61.0,))
COLOUR = Scale(mean=(125.3, 123.0, 113.9), deviation=(63.0, 62.1, 66.7))
"""Mean and standard deviation of each channel over the train batches, on the scale 0 to 255."""


def read(folder: Path, *, colour: bool) -> Pieces:
    """Pictures from data_batch_1.bin to data_batch_5.bin and test_batch.bin."""
    train = [_records(folder / name) for name in TRAIN_FILES]
    last_tenth = sum(map(len, train)) * 9 // 10
    return {
        "train": _part(train, 0, last_tenth, colour),
        "validation": _part(train, last_tenth, None, colour),
        "test": _part([_records(folder / "test_batch.bin")], 0, None, colour),
    }


def _records(path: Path) -> Array:
    size = path.stat().st_size
    if size == 0 or size % RECORD:
        raise BadData(path, f"{size:,} bytes are not a whole number of records of {RECORD:,}: cut short?")
    records: Array = np.memmap(path, dtype=np.uint8, mode="r").reshape(-1, RECORD)
    wrong = np.flatnonzero(records[:, 0] >= CLASSES)
    if len(wrong):
        raise BadData(path, f"record {wrong[0] + 1} has label {records[wrong[0], 0]}, and there are {CLASSES} classes")
    return records


def _part(files: list[Array], begin: int, end: int | None, colour: bool) -> Iterator[Sequences]:
    """The pictures `begin` to `end` of all files taken as one."""
    scale = COLOUR if colour else GRAY
    for records in files:
        chosen = records[max(begin, 0) : None if end is None else max(end, 0)]
        begin -= len(records)
        end = None if end is None else end - len(records)
        if len(chosen):
            pixels = chosen[:, 1:].reshape(-1, 3, PIXELS).transpose(0, 2, 1)
            yield of_one_length(pixels if colour else _gray(pixels), chosen[:, 0], scale)


def _gray(pixels: Array) -> Array:
    weighted = pixels.astype(np.uint32) @ np.array([19595, 38470, 7471], dtype=np.uint32)
    return ((weighted + (1 << 15)) >> 16).astype(np.uint8)[:, :, None]


def _release(colour: bool) -> Release:
    return Release(
        protocol=1,
        collection="cifar-10",
        marker="data_batch_1.bin",
        read=partial(read, colour=colour),
        wanted=("*data_batch_?.bin", "*test_batch.bin"),
        most_bytes=200_000_000,
        downloads=(
            Download(
                "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                170_052_171,
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            ),
        ),
    )


GRAY_RELEASE, COLOUR_RELEASE = _release(colour=False), _release(colour=True)
