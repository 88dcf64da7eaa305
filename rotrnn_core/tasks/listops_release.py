"""How is the released file of ListOps read? As token ids, with the same ids as the trees that we draw.

    Source<TAB>Target
    ( ( ( [MAX 2 ) 9 ) ] )<TAB>9

Round brackets only say how the lists nest to the left and are dropped; `]` becomes X. Each operator holds one letter
that no other word holds, so that a whole chunk is translated at once; a chunk that is not exactly of this form is then
searched for the line at fault.

Source: the readers of Long Range Arena, GitHub google-research/long-range-arena.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rotrnn_core.tasks.dataset import Array, Sequences
from rotrnn_core.tasks.errors import BadData
from rotrnn_core.tasks.listops import CLOSE, EOS, FIRST_DIGIT, FIRST_OPERATOR
from rotrnn_core.tasks.lra import ARCHIVE, COLLECTION
from rotrnn_core.tasks.release import Release
from rotrnn_core.tasks.storage import Pieces

LONGEST = 2048
CHUNK = 1 << 20
FILES = {"train": "train", "validation": "val", "test": "test"}
HEADER = b"Source\tTarget"

TAB, END, WRONG = 253, 254, 255
LETTERS = {ord("I"): 0, ord("A"): 1, ord("E"): 2, ord("S"): 3}
DROPPED = b"[MNXD() \r"
WORD = rb"(?:[()\]0-9]|\[MIN|\[MAX|\[MED|\[SM)"
LINE = re.compile(rb"%b(?: %b)*\t[0-9]" % (WORD, WORD))


def _table() -> bytes:
    table = bytearray([WRONG]) * 256
    for digit in range(10):
        table[ord("0") + digit] = FIRST_DIGIT + digit
    for letter, operator in LETTERS.items():
        table[letter] = FIRST_OPERATOR + operator
    table[ord("]")], table[ord("\t")], table[ord("\n")] = CLOSE, TAB, END
    return bytes(table)


TABLE = _table()


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
        line, rest = 2, b""
        while block := file.read(CHUNK):
            head, newline, tail = (rest + block).rpartition(b"\n")
            rest = tail
            if newline:
                chunk = head + newline
                yield _sequences(chunk, path, line)
                line += chunk.count(b"\n")
        if rest:
            yield _sequences(rest + b"\n", path, line)


def _sequences(chunk: bytes, path: Path, line: int) -> Sequences:
    """The trees of whole lines, of which the first is the file's line `line`."""
    ids = np.frombuffer(chunk.translate(TABLE, DROPPED), dtype=np.uint8)
    ends = np.flatnonzero(ids == END)
    if not _well_formed(chunk, ids, ends):
        _point_out(chunk, path, line)
    labels = ids[ends - 1] - FIRST_DIGIT
    keep = np.ones(len(ids), dtype=bool)
    keep[ends] = keep[ends - 1] = False
    tokens = np.where(ids == TAB, np.uint8(EOS), ids)[keep]
    offsets = np.concatenate([[0], ends - 1 - 2 * np.arange(len(ends))]).astype(np.int64)
    if np.diff(offsets).max() > LONGEST:
        tokens, offsets = _cut(tokens, offsets)
    return Sequences(tokens, offsets, labels)


def _well_formed(chunk: bytes, ids: Array, ends: Array) -> bool:
    """Whether the counts of everything that was translated or dropped are those of well-formed lines."""
    counts = np.bincount(ids, minlength=256)
    starts = np.concatenate([[0], ends[:-1] + 1])
    words = {b"[MIN ": ord("I"), b"[MAX ": ord("A"), b"[MED ": ord("E"), b"[SM ": ord("S")}
    return bool(
        counts[WRONG] == 0
        and counts[TAB] == len(ends)
        and (ends - starts >= 3).all()
        and (ids[ends - 2] == TAB).all()
        and (ids[ends - 1] >= FIRST_DIGIT).all()
        and (ids[ends - 1] < FIRST_OPERATOR).all()
        and all(chunk.count(word) == counts[TABLE[letter]] for word, letter in words.items())
        and chunk.count(b"[") == counts[FIRST_OPERATOR:CLOSE].sum()
        and sum(chunk.count(letter) for letter in (b"M", b"N", b"X", b"D"))
        == 2 * counts[FIRST_OPERATOR]
        + 2 * counts[FIRST_OPERATOR + 1]
        + 2 * counts[FIRST_OPERATOR + 2]
        + counts[FIRST_OPERATOR + 3]
        and chunk.count(b"\r") == chunk.count(b"\r\n")
    )


def _point_out(chunk: bytes, path: Path, line: int) -> None:
    for number, text in enumerate(chunk.split(b"\n")[:-1], start=line):
        text = text.removesuffix(b"\r")
        if LINE.fullmatch(text):
            continue
        tree, tab, label = text.partition(b"\t")
        if not tab:
            problem = "1 column instead of 2"
        elif not re.fullmatch(rb"[0-9]", label):
            problem = f"the label is {label[:20]!r}, and has to be a digit"
        else:
            odd = next((word for word in tree.split(b" ") if not re.fullmatch(WORD, word)), tree[:20])
            problem = f"{odd[:20]!r} is no word of a tree"
        raise BadData(path, problem, number)


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
