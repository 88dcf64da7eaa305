"""How is the released file of ListOps read? As token ids, with the same ids as the trees that we draw.

    Source<TAB>Target
    ( ( ( [MAX 2 ) 9 ) ] )<TAB>9

Round brackets only say how the lists nest to the left and are dropped; `]` becomes X. A table says for each state and
byte which state follows and what is written, so that one pass in machine code reads and checks every byte.

Source: the readers of Long Range Arena, GitHub google-research/long-range-arena.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn, no_type_check

import numpy as np

from rotrnn_core.tasks.compiling import compiled
from rotrnn_core.tasks.dataset import Array, Sequences
from rotrnn_core.tasks.errors import BadData
from rotrnn_core.tasks.listops import CLOSE, EOS, FIRST_DIGIT, FIRST_OPERATOR, OPERATORS
from rotrnn_core.tasks.lra import ARCHIVE, COLLECTION
from rotrnn_core.tasks.release import Release
from rotrnn_core.tasks.storage import Pieces

LONGEST = 2048
CHUNK = 1 << 20
FILES = {"train": "train", "validation": "val", "test": "test"}
HEADER = b"Source\tTarget"
SHORTEST_LINE = 4
"""Bytes of a digit, a tab, a label and a line's end."""
WORD = rb"(?:[()\]0-9]|\[MIN|\[MAX|\[MED|\[SM)"

BEGIN, BETWEEN, LABEL, LAST, RETURN = range(5)
"""States: before a word, after one, before the label, after it, after a carriage return; then those inside a word."""
ERROR = 255
IS_LABEL = 100
"""What is written is a token id, or this plus a label, or 0 for nothing."""


def _table() -> Array:
    """By 256 * state + byte: 65,536 times the state that follows, plus what is written."""
    inside = {b"[": 5}
    for operator in OPERATORS:
        for end in range(2, len(operator)):
            inside.setdefault(operator[:end].encode(), 5 + len(inside))
    follows = np.full((5 + len(inside), 256), ERROR, dtype=np.uint8)
    written = np.zeros(follows.shape, dtype=np.uint8)
    for byte in b"()]0123456789":
        follows[BEGIN, byte] = BETWEEN
    written[BEGIN, ord("]")] = CLOSE
    for digit in range(10):
        written[BEGIN, ord("0") + digit] = FIRST_DIGIT + digit
        follows[LABEL, ord("0") + digit] = LAST
        written[LABEL, ord("0") + digit] = IS_LABEL + digit
    follows[BEGIN, ord("[")] = inside[b"["]
    for number, operator in enumerate(OPERATORS):
        word = operator.encode()
        for end in range(1, len(word)):
            follows[inside[word[:end]], word[end]] = inside.get(word[: end + 1], BETWEEN)
        written[inside[word[:-1]], word[-1]] = FIRST_OPERATOR + number
    follows[BETWEEN, ord(" ")], follows[BETWEEN, ord("\t")] = BEGIN, LABEL
    follows[LAST, ord("\r")], follows[LAST, ord("\n")], follows[RETURN, ord("\n")] = RETURN, BEGIN, BEGIN
    return (follows.astype(np.uint32) * 65_536 + written).reshape(-1)


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
    text = np.frombuffer(chunk, dtype=np.uint8)
    tokens = np.empty(len(text) + 1, dtype=np.uint8)
    most = len(text) // SHORTEST_LINE + 1
    offsets, labels = np.empty(most + 1, dtype=np.int64), np.empty(most, dtype=np.uint8)
    place, count = _scan(text, TABLE, tokens, offsets, labels)
    if place < len(text):
        _point_out(chunk, place, path, line)
    offsets, labels = offsets[: count + 1], labels[:count]
    tokens = tokens[: offsets[-1]]
    if np.diff(offsets).max() > LONGEST:
        tokens, offsets = _cut(tokens, offsets)
    return Sequences(tokens, offsets, labels)


@no_type_check
@compiled
def _scan(text, table, tokens, offsets, labels):
    """Translate lines of bytes into token ids; gives where the first wrong byte is, and the trees."""
    offsets[0] = 0
    row, count, tree = 0, 0, 0
    for place in range(len(text)):
        entry = table[row | text[place]]
        row = (entry >> 8) & 0xFF00
        said = entry & 0xFF
        if row == ERROR << 8:
            return place, tree
        if said >= IS_LABEL:
            labels[tree] = said - IS_LABEL
            tree += 1
            offsets[tree] = count + 1
            said = EOS
        tokens[count] = said
        count += said != 0
    return len(text), tree


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
