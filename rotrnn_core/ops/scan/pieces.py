"""Into which pieces is a batch of sequences cut, so that one piece's states stay in the cache?"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

_PIECE_BYTES = 2**22
_STEPS = 256


class Piece(NamedTuple):
    """Rows and steps of one piece, and its place among the pieces of its rows."""

    rows: slice
    steps: slice
    place: int


class Pieces(NamedTuple):
    """A cut of (batch, time) into pieces of at most (rows, steps), the same whatever the number of threads."""

    batch: int
    time: int
    rows: int
    steps: int

    @property
    def number(self) -> int:
        """Pieces along time."""
        return -(-self.time // self.steps)

    def along(self, first_row: int, longest: int, *, reverse: bool) -> Iterator[Piece]:
        """The pieces of one group of rows that hold a valid step, in a direction of time."""
        rows = slice(first_row, min(first_row + self.rows, self.batch))
        places = range(-(-longest // self.steps))
        for place in reversed(places) if reverse else places:
            yield Piece(rows, slice(place * self.steps, min((place + 1) * self.steps, self.time)), place)

    def part_of(self, kept: Tensor, piece: Piece) -> Tensor:
        """The part of the states of all steps, (batch * time * d_state,), that is a piece's: in a row, step by step."""
        rows, width = piece.rows.stop - piece.rows.start, len(kept) // (self.batch * self.time)
        first = (piece.rows.start * self.time + rows * piece.steps.start) * width
        return kept[first : first + rows * (piece.steps.stop - piece.steps.start) * width]


def pieces_of(batch: int, time: int, d_state: int, dtype: torch.dtype) -> Pieces:
    """The cut for states of d_state numbers."""
    rows = _PIECE_BYTES // (_STEPS * d_state * dtype.itemsize)
    return Pieces(batch, time, min(batch, max(1, rows)), _STEPS)


def valid_part(x: Tensor, piece: Piece, lengths: Tensor | None) -> Tensor:
    """A piece of (batch, time, ..), zero in the padding; a view where nothing is padded."""
    part = x[piece.rows, piece.steps]
    if lengths is None:
        return part
    ends = lengths[piece.rows]
    if int(ends.min()) >= piece.steps.stop:
        return part
    padding = torch.arange(piece.steps.start, piece.steps.stop) >= ends.unsqueeze(-1)
    return part.masked_fill(padding.unsqueeze(-1), 0)
