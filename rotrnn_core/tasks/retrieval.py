"""What is Retrieval? Pairs of papers as bytes, each cut at 4000: does one cite the other?

The release has a table per split, without a header and without quoting: label, id, id, text, text, between tabs. A
quote is a letter like any other, a carriage return before the line's end is none of the text. The tables come to
10 GB and are read line by line.

Source: Long Range Arena, arXiv:2011.04006.
"""

from collections.abc import Iterator
from pathlib import Path

from rotrnn_core.tasks.dataset import Array, Sequences, joined
from rotrnn_core.tasks.documents import check_utf8, encode
from rotrnn_core.tasks.errors import BadData
from rotrnn_core.tasks.lra import ARCHIVE, COLLECTION
from rotrnn_core.tasks.release import Release
from rotrnn_core.tasks.storage import Pieces

LONGEST = 4000
PIECE = 256
COLUMNS = 5
FILES = {"train": "train", "validation": "eval", "test": "test"}


def read(folder: Path) -> Pieces:
    """Pairs from new_aan_pairs.train.tsv, .eval.tsv and .test.tsv, in the files' order."""
    return {split: pairs(folder / f"new_aan_pairs.{name}.tsv") for split, name in FILES.items()}


def pairs(path: Path) -> Iterator[Sequences]:
    """The pairs of one table, some hundreds at a time.

    Raises:
        BadData: A line that does not have five columns, a label other than 0 and 1, or bytes that are not UTF-8.
    """
    rows: list[Array] = []
    labels: list[int] = []
    with path.open("rb", buffering=1 << 20) as file:
        for number, line in enumerate(file, start=1):
            label, first, second = _cells(line, path, number)
            rows += (encode(first, LONGEST), encode(second, LONGEST))
            labels.append(label)
            if len(labels) == PIECE:
                yield joined(rows, labels, documents=2)
                rows, labels = [], []
    if labels:
        yield joined(rows, labels, documents=2)


def _cells(line: bytes, path: Path, number: int) -> tuple[int, bytes, bytes]:
    check_utf8(line, path, number)
    cells = line.rstrip(b"\r\n").split(b"\t")
    if len(cells) != COLUMNS:
        raise BadData(path, f"{len(cells)} columns instead of {COLUMNS}", number)
    try:
        label = float(cells[0])
    except ValueError:
        label = -1.0
    if label not in (0.0, 1.0):
        raise BadData(path, f"the label is {cells[0][:20].decode()!r}, and has to be 0.0 or 1.0", number)
    return int(label), cells[3], cells[4]


RELEASE = Release(
    protocol=1,
    collection=COLLECTION,
    marker="new_aan_pairs.train.tsv",
    read=read,
    wanted=("*new_aan_pairs.*.tsv",),
    most_bytes=20_000_000_000,
    downloads=(ARCHIVE,),
)
