"""In which order are examples seen? Batches from a seed, of similar length, whose place can be stored and restored."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rotrnn_core.tasks.dataset import Array, Sequences

POOL = 16
"""Batches that are sorted by length together: little padding, and every pool mixes the whole split."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Sequences padded with zeros to the longest among them.

    Args:
        tokens: Token ids, (batch, longest).
        lengths: Valid steps of each sequence, (batch,).
        labels: Class of each sequence, (batch,).
    """

    tokens: Tensor
    lengths: Tensor
    labels: Tensor

    def to(self, device: torch.device) -> "Batch":
        """The same batch on a device."""
        return Batch(self.tokens.to(device), self.lengths.to(device), self.labels.to(device))


def batch_of(sequences: Sequences, indices: Array) -> Batch:
    """The batch of the sequences at `indices`, in that order."""
    rows = [sequences.sequence(int(index)) for index in indices]
    lengths = [len(row) for row in rows]
    tokens = np.zeros((len(rows), max(lengths)), dtype=np.int64)
    for place, row in zip(tokens, rows, strict=True):
        place[: len(row)] = row
    labels = sequences.labels[indices].astype(np.int64)
    return Batch(torch.from_numpy(tokens), torch.tensor(lengths), torch.from_numpy(labels))


def batches_in_order(sequences: Sequences, batch_size: int) -> Iterator[Batch]:
    """Every sequence once, shortest first: for evaluation."""
    order = np.argsort(sequences.lengths, kind="stable")
    for begin in range(0, len(order), batch_size):
        yield batch_of(sequences, order[begin : begin + batch_size])


class Sampler:
    """An endless, deterministic order of training batches.

    Each epoch is a permutation drawn from (seed, epoch), sorted by length within pools of 16 batches, whose batches
    are then shuffled. Examples that do not fill a last batch sit an epoch out.

    Args:
        sequences: The training split.
        batch_size: Sequences per batch; the whole split where it holds fewer.
        seed: Source of the order.
        drawn: Batches already taken: the place to go on from.
    """

    def __init__(self, sequences: Sequences, batch_size: int, seed: int, drawn: int = 0) -> None:
        self._sequences = sequences
        self._lengths = sequences.lengths
        self._batch_size = min(batch_size, len(sequences))
        self._per_epoch = len(sequences) // self._batch_size
        self._seed = seed
        self._epoch = -1
        self._plan: Array = np.empty((0, 0), dtype=np.int64)
        self.drawn = drawn

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        epoch, place = divmod(self.drawn, self._per_epoch)
        if epoch != self._epoch:
            self._plan = self._plan_of(epoch)
            self._epoch = epoch
        self.drawn += 1
        return batch_of(self._sequences, self._plan[place])

    def _plan_of(self, epoch: int) -> Array:
        rng = np.random.default_rng([self._seed, epoch])
        order = rng.permutation(len(self._sequences))[: self._per_epoch * self._batch_size]
        for begin in range(0, len(order), POOL * self._batch_size):
            pool = order[begin : begin + POOL * self._batch_size]
            batches = pool[np.argsort(self._lengths[pool], kind="stable")].reshape(-1, self._batch_size)
            order[begin : begin + len(pool)] = rng.permutation(batches).reshape(-1)
        return order.reshape(-1, self._batch_size)
