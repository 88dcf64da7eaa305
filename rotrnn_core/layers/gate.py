"""What stands between a cell and the residual stream? A gated non-linearity with dropout."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from rotrnn_core.layers.linear import Linear
from rotrnn_core.notation import Inputs
from rotrnn_core.ops.gated_unit import Mask, Value, gated_unit

_VALUES: dict[str, Value] = {"full_glu": "mapped", "half_glu1": "active", "half_glu2": "input"}


class Gate(nn.Module):
    """The gates of S5's block; gelu is the tanh form.

        full_glu   y = drop(gelu(y)); drop(W1 y * sigmoid(W2 y))
        half_glu1  y = drop(gelu(y)); drop(y * sigmoid(W2 y))
        half_glu2  drop(y * sigmoid(W2 drop(gelu(y))))
        gelu       drop(gelu(y))

    Args:
        d_model: Width of input and output.
        kind: One of the four above.
        dropout: Share of channels set to zero in training, one mask over time per (sequence, channel), in [0, 1).
        generator: Source of the initial weights; torch's own when absent.
    """

    def __init__(
        self,
        d_model: int,
        kind: Literal["full_glu", "half_glu1", "half_glu2", "gelu"],
        *,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.kind = kind
        self.dropout = dropout
        if kind == "full_glu":
            self.W1 = Linear(d_model, d_model, generator)
        if kind != "gelu":
            self.W2 = Linear(d_model, d_model, generator)

    def forward(self, y: Inputs, generator: torch.Generator | None = None) -> Inputs:
        """Gate y; `generator` draws the dropout masks in training. Under autocast all of it has autocast's dtype."""
        device = y.device.type
        y = y.to(torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else y.dtype)
        if self.kind == "gelu":
            active, mask = functional.gelu(y, approximate="tanh"), self._mask(y, generator)
            return active if mask is None else active * mask
        masks = self._mask(y, generator), self._mask(y, generator)
        mapping = _in_dtype_of(y, self.W1) if self.kind == "full_glu" else None
        with torch.autocast(device, enabled=False):
            return gated_unit(y, _in_dtype_of(y, self.W2), _VALUES[self.kind], mapping, masks)

    def _mask(self, y: Tensor, generator: torch.Generator | None) -> Mask | None:
        if not self.training or self.dropout == 0:
            return None
        keep = 1 - self.dropout
        mask = torch.empty(y.shape[0], 1, y.shape[2], dtype=y.dtype, device=y.device)
        return mask.bernoulli_(keep, generator=generator).div_(keep)


def _in_dtype_of(y: Tensor, linear: Linear) -> tuple[Tensor, Tensor]:
    return linear.weight.to(y.dtype), linear.bias.to(y.dtype)
