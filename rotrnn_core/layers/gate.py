"""What stands between a cell and the residual stream? A gated non-linearity with dropout."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from rotrnn_core.layers.linear import Linear
from rotrnn_core.notation import Inputs


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
        """Gate y; `generator` draws the dropout masks in training."""
        active = self._drop(functional.gelu(y, approximate="tanh"), generator)
        if self.kind == "gelu":
            return active
        opening = torch.sigmoid(self.W2(active))
        if self.kind == "full_glu":
            return self._drop(self.W1(active) * opening, generator)
        gated = (active if self.kind == "half_glu1" else y) * opening
        return self._drop(gated, generator)

    def _drop(self, y: Tensor, generator: torch.Generator | None) -> Tensor:
        if not self.training or self.dropout == 0:
            return y
        keep = 1 - self.dropout
        mask = torch.empty(y.shape[0], 1, y.shape[2], dtype=y.dtype, device=y.device)
        return y * mask.bernoulli_(keep, generator=generator).div_(keep)
