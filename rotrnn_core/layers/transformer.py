"""What is the attention reference? torch's Transformer encoder layer, with position codes on its input."""

import math
from typing import NoReturn

import torch
from jaxtyping import Float
from torch import Tensor, nn

from rotrnn_core.cells import TransformerConfig
from rotrnn_core.layers.cell import Cell
from rotrnn_core.layers.seeding import drawn_from
from rotrnn_core.notation import CellState, Input, Inputs, Lengths


class Transformer(Cell):
    """torch's encoder layer, (batch, time, d_model) to the same: pre-norm self-attention and a feed-forward part.

    The network has no position codes of its own, so that sines and cosines are added to the input here. The layer
    keeps no state of fixed size: `n_heads`, which counts heads of a state, is None, no hidden-norm trace is defined,
    and `states` and `step` are refused.

    Parameters: torch's in `encoder`, 4 d_model (d_model + 1) + 4 d_model + d_state (2 d_model + 1) + d_model numbers.

    Args:
        d_model: Width of input and output; even, divisible by n_heads.
        d_state: Width of the feed-forward part.
        bidirectional: Attend to the whole sequence; without it each step attends to itself and to earlier ones.
        n_heads: Heads of the attention.
        generator: Source of the initial values; torch's own when absent.

    Raises:
        ValueError: A value that cannot be right; the text holds it.

    Source:
        arXiv:1706.03762; the position codes are those of its section 3.5.
    """

    def __init__(
        self,
        d_model: int,
        d_state: int,
        *,
        bidirectional: bool = False,
        n_heads: int = 4,
        generator: torch.Generator | None = None,
    ) -> None:
        TransformerConfig(n_heads=n_heads).check_sizes(d_model, d_state)
        super().__init__(d_model, d_state, None, bidirectional=bidirectional)
        with drawn_from(generator):
            self.encoder = nn.TransformerEncoderLayer(
                d_model, n_heads, d_state, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            )

    def forward(self, u: Inputs, lengths: Lengths | None = None) -> Inputs:
        padding = self._padding(u, lengths)
        time = u.shape[1]
        ahead = None
        if self.directions == 1:
            ahead = torch.ones(time, time, dtype=torch.bool, device=u.device).triu(1)
        y: Tensor = self.encoder(
            u + position_codes(time, self.d_model).to(u),
            src_mask=ahead,
            src_key_padding_mask=None if padding is None else padding.squeeze(-1),
        )
        return y if padding is None else y.masked_fill(padding, 0.0)

    def states(self, u: Inputs, lengths: Lengths | None = None) -> NoReturn:
        """Refused.

        Raises:
            ValueError: Always: there is no state of fixed size.
        """
        raise ValueError("the cell is a transformer: it keeps no state of fixed size, so that there are no states")

    def step(self, u_t: Input, h: CellState | None = None) -> NoReturn:
        """Refused.

        Raises:
            ValueError: Always: there is no state of fixed size.
        """
        raise ValueError("the cell is a transformer: it keeps no state of fixed size and cannot run step by step")

    def recurrence_parameters(self) -> list[nn.Parameter]:
        """None: torch's layer trains like any other weights."""
        return []

    def input_parameters(self) -> list[nn.Parameter]:
        """None, likewise."""
        return []

    def output_parameters(self) -> list[nn.Parameter]:
        """None, likewise."""
        return []


def position_codes(time: int, d_model: int) -> Float[Tensor, "time d_model"]:
    """sin(t / 10000^(2k / d_model)) and its cosine in columns 2k and 2k + 1, float64, t = 0 .. time - 1."""
    rate = torch.exp(-math.log(10_000) / d_model * torch.arange(0, d_model, 2, dtype=torch.float64))
    angle = torch.outer(torch.arange(time, dtype=torch.float64), rate)
    return torch.stack([torch.sin(angle), torch.cos(angle)], dim=-1).flatten(-2)
