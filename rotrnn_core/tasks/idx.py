"""How is an IDX file read? A header of sizes, then unsigned bytes; packed by gzip or not.

    0 0 8 axes | size of each axis, 32 bits, most significant first | bytes

Source: LeCun, the MNIST database.
"""

import gzip
import hashlib
import math
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from rotrnn_core.tasks.dataset import Array, Scale, Sequences, of_one_length
from rotrnn_core.tasks.errors import BadData
from rotrnn_core.tasks.storage import Pieces

UNSIGNED_BYTES = 8
MOST_BYTES = 200_000_000
CLASSES = 10
HELD_OUT = 12
"""The last one in so many training pictures is for validation: 5,000 of 60,000."""


def read_idx(path: Path, md5: Mapping[str, str] | None = None) -> Array:
    """The array of a file, or of the same name with .gz.

    Args:
        path: Without .gz.
        md5: Hash of the unpacked content by file name, checked where it is known.

    Raises:
        BadData: It is not IDX, is cut short, is larger than any of these files, or is another file than is known.
    """
    packed = path.with_name(f"{path.name}.gz")
    found = path if path.exists() else packed
    try:
        with gzip.open(found) if found == packed else found.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadData(found, f"damaged or cut short ({error})") from error
    if len(content) > MOST_BYTES:
        raise BadData(found, f"unpacks to more than {MOST_BYTES:,} bytes")
    axes = content[3] if len(content) >= 4 else 0
    if content[:3] != bytes([0, 0, UNSIGNED_BYTES]) or not axes or len(content) < 4 * (axes + 1):
        raise BadData(found, "not an IDX file of unsigned bytes")
    shape = struct.unpack_from(f">{axes}I", content, 4)
    data = np.frombuffer(content, dtype=np.uint8, offset=4 * (axes + 1))
    if len(data) != math.prod(shape):
        raise BadData(found, f"holds {len(data):,} bytes where its header says {' x '.join(map(str, shape))}")
    if md5 is not None and hashlib.md5(content, usedforsecurity=False).hexdigest() != md5[path.name]:
        raise BadData(found, "not the published file: its MD5 is another")
    return data.reshape(shape)


def read_pictures(folder: Path, scale: Scale, md5: Mapping[str, str] | None = None) -> Pieces:
    """The three splits of four files named as those of MNIST; hashes are checked where they are given."""
    train = _pair(folder, "train", scale, md5)
    test = _pair(folder, "t10k", scale, md5)
    kept = len(train) - len(train) // HELD_OUT
    return {"train": [train.first(kept)], "validation": [train.after(kept)], "test": [test]}


def _pair(folder: Path, name: str, scale: Scale, md5: Mapping[str, str] | None) -> Sequences:
    picture_file, label_file = folder / f"{name}-images-idx3-ubyte", folder / f"{name}-labels-idx1-ubyte"
    pictures, labels = read_idx(picture_file, md5), read_idx(label_file, md5)
    if pictures.ndim != 3 or labels.ndim != 1 or len(pictures) != len(labels):
        raise BadData(picture_file, f"{len(pictures):,} pictures, and {len(labels):,} labels in {label_file.name}")
    if not pictures.size:
        raise BadData(picture_file, "empty pictures")
    if labels.max() >= CLASSES:
        wrong = int(np.argmax(labels >= CLASSES))
        raise BadData(label_file, f"label {labels[wrong]} of picture {wrong + 1}, and there are {CLASSES} classes")
    return of_one_length(pictures.reshape(len(pictures), -1, 1), labels, scale)
