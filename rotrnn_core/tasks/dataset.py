"""What is a data set in memory? Token sequences laid end to end, with their labels, in three splits."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
SPLITS = ("train", "validation", "test")


@dataclass(frozen=True, eq=False)
class Sequences:
    """Token sequences of one split.

    Args:
        tokens: All tokens end to end, unsigned bytes, (sum of lengths,).
        offsets: Where each sequence begins, and the end of the last, 64-bit, (size + 1,).
        labels: Class of each sequence, unsigned bytes, (size,).
    """

    tokens: Array
    offsets: Array
    labels: Array

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> Array:
        """Number of tokens of each sequence, (size,)."""
        return np.diff(self.offsets)

    def sequence(self, index: int) -> Array:
        """The tokens of one sequence."""
        return self.tokens[self.offsets[index] : self.offsets[index + 1]]


@dataclass(frozen=True, eq=False)
class Dataset:
    """The three splits of a task."""

    train: Sequences
    validation: Sequences
    test: Sequences
