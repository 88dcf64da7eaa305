"""What is the non-linear reference? torch's gated recurrent unit, read out like the other cells."""

import torch
from torch import Tensor, nn

from rotrnn_core.cells import GRUConfig
from rotrnn_core.layers.cell import Cell
from rotrnn_core.layers.linear import Linear
from rotrnn_core.layers.seeding import drawn_from
from rotrnn_core.notation import CellState, CellStates, Input, Inputs, Lengths


class GRU(Cell):
    """A GRU of d_state units, (batch, time, d_model) to the same: y = C h + c; the whole state is one head.

    Parameters: torch's in `forward_units` (and `backward_units`), 3 d_state (d_model + d_state + 2) numbers for each
    direction, and those of the linear map `C`, (directions * d_state + 1) d_model.

    Args:
        d_model: Width of input and output.
        d_state: Units of one direction.
        bidirectional: Add units of their own that read backwards in time.
        generator: Source of the initial values; torch's own when absent.

    Raises:
        ValueError: A value that cannot be right; the text holds it.
    """

    def __init__(
        self,
        d_model: int,
        d_state: int,
        *,
        bidirectional: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        GRUConfig().check_sizes(d_model, d_state)
        super().__init__(d_model, d_state, 1, bidirectional=bidirectional)
        with drawn_from(generator):
            self.forward_units = nn.GRU(d_model, d_state, batch_first=True)
            self.backward_units = nn.GRU(d_model, d_state, batch_first=True) if bidirectional else None
        self.C = Linear(self.directions * d_state, d_model, generator)

    def forward(self, u: Inputs, lengths: Lengths | None = None) -> Inputs:
        y: Tensor = self.C(self.states(u, lengths))
        padding = self._padding(u, lengths)
        return y if padding is None else y.masked_fill(padding, 0.0)

    def states(self, u: Inputs, lengths: Lengths | None = None) -> CellStates:
        padding = self._padding(u, lengths)
        h, _ = self.forward_units(u)
        if self.backward_units is not None:
            backward, _ = self.backward_units(_turned_round(u, lengths))
            h = torch.cat([h, _turned_round(backward, lengths)], dim=-1)
        states: Tensor = h if padding is None else h.masked_fill(padding, 0.0)
        return states

    def step(self, u_t: Input, h: CellState | None = None) -> tuple[Input, CellState]:
        if self.directions == 2:
            raise ValueError("bidirectional is True: a cell that reads backwards in time cannot run step by step")
        self._check_width(u_t, time_axis=False)
        after, _ = self.forward_units(u_t.unsqueeze(1), None if h is None else h.unsqueeze(0))
        return self.C(after.squeeze(1)), after.squeeze(1)

    def recurrence_parameters(self) -> list[nn.Parameter]:
        """None: torch's units train like any other weights."""
        return []

    def input_parameters(self) -> list[nn.Parameter]:
        """None, likewise."""
        return []

    def output_parameters(self) -> list[nn.Parameter]:
        """None, likewise."""
        return []


def _turned_round(x: Tensor, lengths: Lengths | None) -> Tensor:
    """Each sequence from its last valid step to its first; padding stays where it is."""
    if lengths is None:
        return x.flip(1)
    time = torch.arange(x.shape[1], device=x.device)
    last = lengths.unsqueeze(-1) - 1
    source = torch.where(time <= last, last - time, time)
    return x.gather(1, source.unsqueeze(-1).expand_as(x))
