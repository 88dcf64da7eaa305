"""Where did training break? The first layer and the kind of value that is not finite."""

from collections.abc import Iterable

import torch
from torch import Tensor

from rotrnn_core.model import Network, valid_steps
from rotrnn_core.records import Divergence
from rotrnn_core.tasks import Batch


def all_finite(tensors: Iterable[Tensor]) -> bool:
    """Whether no value is NaN or infinite."""
    return bool(torch.stack([torch.isfinite(tensor).all() for tensor in tensors]).all())


def norm_of(tensors: Iterable[Tensor]) -> Tensor:
    """Euclidean norm over all values of all tensors, float64, without waiting for the device."""
    each = torch._foreach_norm(list(tensors), 2, dtype=torch.float64)
    norm: Tensor = torch.linalg.vector_norm(torch.stack(each))
    return norm


@torch.no_grad()
def locate_activation(network: Network, batch: Batch, step: int, generator: torch.Generator) -> Divergence:
    """The first layer, in forward order, whose output holds a value that is not finite.

    The batch is run once more with the dropout masks that `generator` draws; None as layer means that the encoder or
    the classifier broke, and all blocks are finite.
    """
    valid = valid_steps(batch.inputs, batch.cuts)
    finite: list[bool] = []

    def look(block: torch.nn.Module, arguments: object, output: Tensor) -> None:
        finite.append(all_finite([output if valid is None else output[valid]]))

    handles = [block.register_forward_hook(look) for block in network.blocks]
    try:
        network(batch.inputs, batch.cuts, generator=generator)
    finally:
        for handle in handles:
            handle.remove()
    return Divergence(step=step, layer=finite.index(False) if False in finite else None, kind="activation")


def locate_gradient(network: Network, step: int) -> Divergence:
    """The first layer, in backward order and so the highest, whose gradient holds a value that is not finite."""
    layer = None
    for index, block in enumerate(network.blocks):
        if not all_finite(parameter.grad for parameter in block.parameters() if parameter.grad is not None):
            layer = index
    return Divergence(step=step, layer=layer, kind="gradient")


def locate_parameter(network: Network, step: int) -> Divergence:
    """The first layer with a parameter that is not finite; None where it lies outside the blocks."""
    for index, block in enumerate(network.blocks):
        if not all_finite(block.parameters()):
            return Divergence(step=step, layer=index, kind="parameter")
    return Divergence(step=step, layer=None, kind="parameter")
