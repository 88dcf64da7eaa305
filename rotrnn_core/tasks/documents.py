"""How does a text become token ids? A byte each: its value plus 1, so that 0 pads; UTF-8 has no byte above 244."""

from pathlib import Path

import numpy as np

from rotrnn_core.tasks.dataset import Array
from rotrnn_core.tasks.errors import BadData

TOKENS = 246
EMPTY = b" "
"""Stands for a document without a byte."""


def encode(text: bytes, longest: int) -> Array:
    """The token ids of the first `longest` bytes of a text that is UTF-8."""
    return np.frombuffer(text[:longest] or EMPTY, dtype=np.uint8) + np.uint8(1)


def check_utf8(text: bytes, path: Path, line: int | None = None) -> None:
    """Raise BadData where a text is not UTF-8; without `line`, lines are counted in the text."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        where = text.count(b"\n", 0, error.start) + 1 if line is None else line
        raise BadData(path, f"not UTF-8: {error.reason} (byte {text[error.start]:#04x})", where) from error
