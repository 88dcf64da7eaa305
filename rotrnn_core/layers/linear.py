"""What is a linear map here, and with which values does it begin?"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class Linear(nn.Module):
    """W x + b, started with weights N(0, 1 / fan_in) and bias zero, as in the reference code of S5 and RotRNN.

    Args:
        fan_in: Width of the input.
        fan_out: Width of the output.
        generator: Source of the weights; torch's own when absent. (torch's Linear would draw from its own in any case.)
    """

    def __init__(self, fan_in: int, fan_out: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.fan_in = fan_in
        self.weight = nn.Parameter(torch.randn(fan_out, fan_in, generator=generator) / math.sqrt(fan_in))
        self.bias = nn.Parameter(torch.zeros(fan_out))

    def forward(self, x: Tensor) -> Tensor:
        """Map the last axis from fan_in to fan_out."""
        return functional.linear(x, self.weight, self.bias)
