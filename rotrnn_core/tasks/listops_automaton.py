"""Which token ids do the bytes of ListOps's released file come to? A table of states, run in machine code.

The table says for each state and byte which state follows and what is written, so that one pass reads and checks every
byte. Importing this imports numba.
"""

from typing import no_type_check

import numpy as np

from rotrnn_core.tasks.compiling import compiled
from rotrnn_core.tasks.dataset import Array
from rotrnn_core.tasks.listops import CLOSE, EOS, FIRST_DIGIT, FIRST_OPERATOR, OPERATORS

BEGIN, BETWEEN, LABEL, LAST, RETURN = range(5)
"""States: before a word, after one, before the label, after it, after a carriage return; then those inside a word."""
ERROR = 127
STATE = 1 << 16
"""A state's place in an entry, so that an entry shifted by a byte is where the next state's row begins."""
SPECIAL = 1 << 23
"""From here on an entry is looked at: one of a label, to which this is added, or of an error."""


def _table() -> Array:
    """By 256 * state + byte: STATE times the state that follows, plus the token id or label, or 0 for nothing."""
    inside = {b"[": 5}
    for operator in OPERATORS:
        for end in range(2, len(operator)):
            inside.setdefault(operator[:end].encode(), 5 + len(inside))
    follows = np.full((5 + len(inside), 256), ERROR, dtype=np.uint8)
    written = np.zeros(follows.shape, dtype=np.uint32)
    for byte in b"()]0123456789":
        follows[BEGIN, byte] = BETWEEN
    written[BEGIN, ord("]")] = CLOSE
    for digit in range(10):
        written[BEGIN, ord("0") + digit] = FIRST_DIGIT + digit
        follows[LABEL, ord("0") + digit] = LAST
        written[LABEL, ord("0") + digit] = SPECIAL + digit
    follows[BEGIN, ord("[")] = inside[b"["]
    for number, operator in enumerate(OPERATORS):
        word = operator.encode()
        for end in range(1, len(word)):
            follows[inside[word[:end]], word[end]] = inside.get(word[: end + 1], BETWEEN)
        written[inside[word[:-1]], word[-1]] = FIRST_OPERATOR + number
    follows[BETWEEN, ord(" ")], follows[BETWEEN, ord("\t")] = BEGIN, LABEL
    follows[LAST, ord("\r")], follows[LAST, ord("\n")], follows[RETURN, ord("\n")] = RETURN, BEGIN, BEGIN
    written[follows == ERROR] = SPECIAL
    return (follows.astype(np.uint32) * STATE + written).reshape(-1)


TABLE = _table()


@no_type_check
@compiled
def translate(text, table, tokens, offsets, labels):
    """Translate lines of bytes into token ids.

    Every number is unsigned, so that no place is looked at as one that counts from the end.

    Args:
        text: Bytes of whole lines.
        table: TABLE.
        tokens: Room for the token ids of all trees, and one more.
        offsets: Room for where each tree begins, and the end of the last.
        labels: Room for a label a tree.

    Returns:
        Where the first wrong byte is, or the end; and the number of trees.
    """
    one, nothing, byte = np.uint64(1), np.uint64(0), np.uint64(8)
    special, refused = np.uint64(SPECIAL), np.uint64(SPECIAL + ERROR * STATE)
    row, count, tree = nothing, nothing, nothing
    offsets[nothing] = 0
    for place in range(len(text)):
        entry = np.uint64(table[row | np.uint64(text[np.uint64(place)])])
        if entry >= special:
            if entry >= refused:
                return place, tree
            entry -= special
            labels[tree] = np.uint8(entry)
            tree += one
            entry = (entry >> byte << byte) | np.uint64(EOS)
            offsets[tree] = count + one
        row = entry >> byte
        said = np.uint8(entry)
        tokens[count] = said
        count += np.uint64(said != 0)
    return len(text), tree
