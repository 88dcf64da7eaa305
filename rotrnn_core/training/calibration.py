"""With which running statistics does batch normalisation begin? With those of real batches, before the first step.

In evaluation mode a fresh batch norm would pass its input through unscaled. The hidden norms before training would
then lack the scale that they have ever after, and `relative` would show how running statistics warm up.
"""

from collections.abc import Iterable

import torch

from rotrnn_core.layers import MaskedBatchNorm
from rotrnn_core.model import Network
from rotrnn_core.tasks import Batch

BATCHES = 8
"""Batches averaged before training."""


@torch.no_grad()
def calibrate(network: Network, batches: Iterable[Batch], generator: torch.Generator) -> None:
    """Set every running statistic to its average over the batches; no parameter changes."""
    norms = [module for module in network.modules() if isinstance(module, MaskedBatchNorm)]
    usual = [norm.momentum for norm in norms]
    was_training = network.training
    network.train()
    for count, batch in enumerate(batches, start=1):
        for norm in norms:
            norm.momentum = 1 / count
        network(batch.inputs, batch.cuts, generator=generator)
    network.train(was_training)
    for norm, momentum in zip(norms, usual, strict=True):
        norm.momentum = momentum
