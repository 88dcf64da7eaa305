"""In which order are examples seen? Batches from a seed, of similar length, whose place can be stored and restored."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rotrnn_core.tasks.dataset import Array, Scale, Sequences

POOL = 16
"""Batches that are sorted by length together: little padding, and every pool mixes the whole split."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Sequences padded with zeros to the longest among them.

    Args:
        inputs: Token ids, (documents * batch, longest), or frames, (documents * batch, longest, channels).
        lengths: Valid steps of each sequence, (documents * batch,).
        labels: Class of each example, (batch,).
        padded: Whether anything may be padded: False where all sequences of the split have one length.
    """

    inputs: Tensor
    lengths: Tensor
    labels: Tensor
    padded: bool = True

    @property
    def cuts(self) -> Tensor | None:
        """The lengths where anything may be padded; None lets the network leave masks out."""
        return self.lengths if self.padded else None

    def to(self, device: torch.device) -> "Batch":
        """The same batch on a device; from pinned memory the copy does not wait for it."""
        inputs, lengths, labels = (
            part.to(device, non_blocking=True) for part in (self.inputs, self.lengths, self.labels)
        )
        return Batch(inputs, lengths, labels, self.padded)

    def pinned(self) -> "Batch":
        """The same batch in memory from which a GPU can copy by itself."""
        return Batch(self.inputs.pin_memory(), self.lengths.pin_memory(), self.labels.pin_memory(), self.padded)


def batch_of(sequences: Sequences, indices: Array) -> Batch:
    """The batch of the examples at `indices`, in that order."""
    rows = (indices[:, None] * sequences.documents + np.arange(sequences.documents)).reshape(-1)
    lengths = sequences.lengths[rows]
    if sequences.fixed_length is not None:
        blocks = sequences.inputs.reshape(len(sequences.lengths), sequences.fixed_length, *sequences.inputs.shape[1:])
        stored = blocks[rows]
    else:
        stored = np.zeros((len(rows), max(lengths), *sequences.inputs.shape[1:]), dtype=sequences.inputs.dtype)
        for place, row in zip(stored, rows.tolist(), strict=True):
            sequence = sequences.sequence(row)
            place[: len(sequence)] = sequence
    inputs = _scaled(stored, lengths, sequences.scale)
    labels = sequences.labels[indices].astype(np.int64)
    padded = sequences.fixed_length is None
    return Batch(torch.from_numpy(inputs), torch.from_numpy(lengths), torch.from_numpy(labels), padded)


def _scaled(stored: Array, lengths: Array, scale: Scale | None) -> Array:
    """Token ids as 64-bit numbers, frames as float32 with zeros in the padding."""
    if scale is None:
        return stored.astype(np.int64)
    factor = 1 / np.array(scale.deviation, dtype=np.float64)
    frames = stored * factor.astype(np.float32) - (np.array(scale.mean) * factor).astype(np.float32)
    if lengths.min() < stored.shape[1]:
        frames[np.arange(stored.shape[1]) >= lengths[:, None]] = 0
    return frames.astype(np.float32, copy=False)


def batches_in_order(sequences: Sequences, batch_size: int) -> Iterator[Batch]:
    """Every example once, shortest first: for evaluation."""
    order = np.argsort(sequences.longest, kind="stable")
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
        self._lengths = sequences.longest
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
