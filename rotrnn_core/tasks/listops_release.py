"""How is the released file of ListOps read? As token ids, with the same ids as the trees that we draw.

    Source<TAB>Target
    ( ( ( [MAX 2 ) 9 ) ] )<TAB>9

Round brackets only say how the lists nest to the left and are dropped; `]` becomes X.

Source: the readers of Long Range Arena, GitHub google-research/long-range-arena.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np

from rotrnn_core.tasks.dataset import Array, Sequences
from rotrnn_core.tasks.errors import BadData
from rotrnn_core.tasks.lra import ARCHIVE, COLLECTION
from rotrnn_core.tasks.release import Release
from rotrnn_core.tasks.storage import Pieces

LONGEST = 2048
CHUNK = 1 << 20
FILES = {"train": "train", "validation": "val", "test": "test"}
HEADER = b"Source\tTarget"
SHORTEST_LINE = 4
"""Bytes of a digit, a tab, a label and a line's end."""
SHORTEST_WORD = 2
"""Bytes of a digit and what parts it from the next word."""
WORD = rb"(?:[()\]0-9]|\[MIN|\[MAX|\[MED|\[SM)"


def read(folder: Path) -> Pieces:
    """Trees from basic_train.tsv, basic_val.tsv and basic_test.tsv, in the files' order."""
    return {split: trees(folder / f"basic_{name}.tsv") for split, name in FILES.items()}


def trees(path: Path) -> Iterator[Sequences]:
    """The trees of one file, a chunk of lines at a time.

    Raises:
        BadData: A line that is not a tree and a digit.
    """
    with path.open("rb") as file:
        header = file.readline()
        if header.rstrip(b"\r\n") != HEADER:
            raise BadData(path, f"the header is {header[:40]!r}, and has to be {HEADER!r}", 1)
        line = 2
        while chunk := file.read(CHUNK):
            chunk += file.readline()
            found = _sequences(chunk if chunk.endswith(b"\n") else chunk + b"\n", path, line)
            line += len(found)
            yield found


def _sequences(chunk: bytes, path: Path, line: int) -> Sequences:
    """The trees of whole lines, of which the first is the file's line `line`."""
    from rotrnn_core.tasks.listops_automaton import TABLE, translate  # machine code, which takes a while to load

    text = np.frombuffer(chunk, dtype=np.uint8)
    tokens = np.empty(len(text) // SHORTEST_WORD + 2, dtype=np.uint8)
    most = len(text) // SHORTEST_LINE + 1
    offsets, labels = np.empty(most + 1, dtype=np.int64), np.empty(most, dtype=np.uint8)
    place, count = translate(text, TABLE, tokens, offsets, labels)
    if place < len(text):
        _point_out(chunk, place, path, line)
    offsets, labels = offsets[: count + 1], labels[:count]
    tokens = tokens[: offsets[-1]]
    if np.diff(offsets).max() > LONGEST:
        tokens, offsets = _cut(tokens, offsets)
    return Sequences(tokens, offsets, labels)


def _point_out(chunk: bytes, place: int, path: Path, line: int) -> NoReturn:
    number = chunk.count(b"\n", 0, place)
    tree, tab, label = chunk.split(b"\n")[number].rstrip(b"\r").partition(b"\t")
    if not tab:
        problem = "1 column instead of 2"
    elif not re.fullmatch(rb"[0-9]", label):
        problem = f"the label is {label[:20]!r}, and has to be a digit"
    else:
        odd = next((word for word in tree.split(b" ") if not re.fullmatch(WORD, word)), tree[:20])
        problem = f"{odd[:20]!r} is no word of a tree"
    raise BadData(path, problem, line + number)


def _cut(tokens: Array, offsets: Array) -> tuple[Array, Array]:
    """Each tree cut at LONGEST tokens."""
    lengths = np.diff(offsets)
    place = np.arange(len(tokens)) - np.repeat(offsets[:-1], lengths)
    kept = np.concatenate([[0], np.cumsum(np.minimum(lengths, LONGEST))]).astype(np.int64)
    return tokens[place < LONGEST], kept


RELEASE = Release(
    protocol=1,
    collection=COLLECTION,
    marker="basic_train.tsv",
    read=read,
    wanted=("*listops-1000/basic_*.tsv",),
    most_bytes=2_000_000_000,
    downloads=(ARCHIVE,),
)
