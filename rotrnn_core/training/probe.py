"""How long are the hidden states? Norms of every layer on one fixed batch: the product's central measurement.

`per_head` is the norm of each head's state (an LRU channel is a head of two real numbers), averaged over the heads;
`whole` is the norm of the layer's whole real state; `relative` is `whole` divided by its mean on the same batch
before the first step of training. Both directions of a bidirectional layer count as one state. Everything is computed
in evaluation mode, statistics in float64, padding left out.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rotrnn_core.model import Block, Network, valid_steps
from rotrnn_core.records import HiddenNorms, Statistic
from rotrnn_core.tasks import Batch


def log_spaced(longest: int, most: int) -> tuple[int, ...]:
    """At most `most` distinct whole numbers from 1 to `longest`, evenly spaced on a log axis."""
    spaced = np.geomspace(1, longest, num=min(most, longest))
    return tuple(int(position) for position in np.unique(np.rint(spaced)))


@dataclass(frozen=True)
class _Summary:
    """What one layer's norms come to, over (batch, valid time)."""

    mean: float
    deviation: float
    minimum: float
    maximum: float
    non_finite: int
    profile: tuple[float, ...]

    def divided_by(self, unit: float) -> "_Summary":
        def share(value: float) -> float:
            return value / unit if unit else math.nan

        return _Summary(
            mean=share(self.mean),
            deviation=share(self.deviation),
            minimum=share(self.minimum),
            maximum=share(self.maximum),
            non_finite=self.non_finite,
            profile=tuple(map(share, self.profile)),
        )


class Probe:
    """Measures the hidden norms of a network on one batch.

    Args:
        batch: The fixed batch, on the network's device.
        positions: Number of places in the profile along time; the first step of a sequence is place 1.
        reference: Each layer's mean whole norm before training; None until `measure` has run at step 0.
    """

    def __init__(self, batch: Batch, positions: int, reference: Sequence[float] | None = None) -> None:
        self._batch = batch
        valid = valid_steps(batch.inputs, batch.lengths)
        assert valid is not None
        self._valid = valid
        self.positions = log_spaced(int(batch.lengths.max()), positions)
        self.reference = None if reference is None else tuple(reference)

    @torch.no_grad()
    def measure(self, network: Network, step: int) -> list[HiddenNorms]:
        """The three statistics after `step` updates; the first measurement ever becomes the reference.

        A network of cells for which no trace is defined gives none.
        """
        cells = [block.cell for block in network.blocks if isinstance(block, Block)]
        heads = [cell.n_heads for cell in cells if cell.n_heads is not None]
        if len(heads) < len(cells):
            return []
        was_training = network.training
        network.eval()
        layers = network.states(self._batch.inputs, self._batch.lengths)
        network.train(was_training)
        norms = [_head_norms(states, n_heads) for states, n_heads in zip(layers, heads, strict=True)]
        per_head = [self._summary(layer.mean(-1)) for layer in norms]
        whole = [self._summary(torch.linalg.vector_norm(layer, dim=-1)) for layer in norms]
        if self.reference is None:
            self.reference = tuple(layer.mean for layer in whole)
        relative = [layer.divided_by(unit) for layer, unit in zip(whole, self.reference, strict=True)]
        return [
            _record(step, "per_head", per_head),
            _record(step, "whole", whole),
            _record(step, "relative", relative),
        ]

    def _summary(self, norms: Tensor) -> "_Summary":
        counted = norms[self._valid]
        places = torch.tensor(self.positions, device=norms.device) - 1
        present = self._valid[:, places]
        profile = torch.where(present, norms[:, places], 0).sum(0) / present.sum(0)
        return _Summary(
            mean=counted.mean().item(),
            deviation=counted.std(correction=0).item(),
            minimum=counted.min().item(),
            maximum=counted.max().item(),
            non_finite=int((~torch.isfinite(counted)).sum()),
            profile=tuple(profile.tolist()),
        )


def _head_norms(states: Tensor, n_heads: int) -> Tensor:
    """Norm of each head's state in float64, (batch, time, n_heads)."""
    heads = states.double().reshape(*states.shape[:-1], n_heads, -1)
    norms: Tensor = torch.linalg.vector_norm(heads, dim=-1)
    return norms


def _record(step: int, statistic: Statistic, layers: list[_Summary]) -> HiddenNorms:
    return HiddenNorms(
        step=step,
        statistic=statistic,
        mean=tuple(layer.mean for layer in layers),
        deviation=tuple(layer.deviation for layer in layers),
        minimum=tuple(layer.minimum for layer in layers),
        maximum=tuple(layer.maximum for layer in layers),
        non_finite=tuple(layer.non_finite for layer in layers),
        profile=tuple(_in_float32(layer.profile) for layer in layers),
    )


def _in_float32(values: Sequence[float]) -> tuple[float, ...]:
    """Rounded to what float32 holds: a profile is kept in half the space, and comes back as it was said."""
    return tuple(torch.tensor(values, dtype=torch.float64).float().tolist())
