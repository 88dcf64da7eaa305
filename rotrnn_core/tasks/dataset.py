"""What is a data set in memory? Sequences of token ids or frames laid end to end, with labels, in three splits."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class Scale:
    """How stored frames become the network's input: (stored - mean) / deviation, channel by channel."""

    mean: tuple[float, ...]
    deviation: tuple[float, ...]


MEASURED = Scale((), ())
"""The scale of the train split's own mean and deviation, to be measured when the data set is written."""


@dataclass(frozen=True, eq=False)
class Sequences:
    """The examples of one split; an example is one sequence, or two where `documents` is 2.

    Args:
        inputs: All steps end to end: token ids, unsigned, (steps,), or frames as they are stored, (steps, channels).
        offsets: Where each sequence begins, and the end of the last, 64-bit, (documents * size + 1,); the two
            sequences of a pair lie one after the other.
        labels: Class of each example, unsigned bytes, (size,).
        documents: Sequences per example.
        scale: What turns stored frames into inputs; none for token ids.
    """

    inputs: Array
    offsets: Array
    labels: Array
    documents: int = 1
    scale: Scale | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def lengths(self) -> Array:
        """Number of steps of each sequence, (documents * size,)."""
        return np.diff(self.offsets)

    @cached_property
    def longest(self) -> Array:
        """Number of steps of each example's longest sequence, (size,)."""
        longest: Array = self.lengths.reshape(-1, self.documents).max(axis=1)
        return longest

    @cached_property
    def fixed_length(self) -> int | None:
        """The length that all sequences have; None where they differ."""
        lengths = self.lengths
        return int(lengths[0]) if len(lengths) and (lengths == lengths[0]).all() else None

    def sequence(self, index: int) -> Array:
        """The stored steps of one sequence."""
        return self.inputs[self.offsets[index] : self.offsets[index + 1]]

    def first(self, size: int) -> "Sequences":
        """The first `size` examples."""
        offsets = self.offsets[: size * self.documents + 1]
        return Sequences(self.inputs[: offsets[-1]], offsets, self.labels[:size], self.documents, self.scale)

    def after(self, size: int) -> "Sequences":
        """What follows the first `size` examples."""
        offsets = self.offsets[size * self.documents :]
        inputs = self.inputs[offsets[0] :]
        return Sequences(inputs, offsets - offsets[0], self.labels[size:], self.documents, self.scale)


@dataclass(frozen=True, eq=False)
class Dataset:
    """The three splits of a task."""

    train: Sequences
    validation: Sequences
    test: Sequences


def joined(rows: list[Array], labels: list[int], documents: int = 1) -> Sequences:
    """Examples from their sequences, one array each, in order."""
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return Sequences(np.concatenate(rows), offsets, np.array(labels, dtype=np.uint8), documents)


def of_one_length(inputs: Array, labels: Array, scale: Scale | None = None) -> Sequences:
    """Examples from a block of equally long sequences, (size, time) or (size, time, channels)."""
    size, time = inputs.shape[:2]
    offsets = np.arange(size + 1, dtype=np.int64) * time
    return Sequences(inputs.reshape(size * time, *inputs.shape[2:]), offsets, labels.astype(np.uint8), scale=scale)
