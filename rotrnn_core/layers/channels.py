"""What do cells share that run one system per channel? Their parameters, the convolution, and the skip.

x' = A x + B u,   y = 2 Re(C x) + D u       for each channel, one of each pair of conjugate states kept
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from rotrnn_core.layers.cell import Cell
from rotrnn_core.notation import CellState, CellStates, Input, Inputs, Lengths
from rotrnn_core.ops.complex import Complex
from rotrnn_core.ops.fourier import convolve
from rotrnn_core.ops.hippo import log_uniform


class ChannelCell(Cell):
    """A linear system per channel with n = d_state / (2 d_model) complex states each.

    The state of the layer is that of all channels, in the order (channel, complex state, component); each complex
    state is a head of two real numbers.

    Parameters: Lambda_re_log, Lambda_im, B_re, B_im (d_model, n), C_re, C_im (d_model, directions * n), log_step,
    D (d_model,). Lambda = -exp(Lambda_re_log) + i Lambda_im. The columns of C lie by direction, then state.

    Args:
        d_model: Width of input and output: the number of systems.
        d_state: Real numbers in the state of one direction, divisible by 2 d_model.
        frequency: Initial Lambda_im of every channel, (n,); the initial real part is -1/2.
        B: Initial B of every channel, (n,).
        bidirectional: Run the same systems backwards in time as well, read out by a second C; the step itself counts
            in both directions.
        dt_min: Least initial step size.
        dt_max: Greatest initial step size; there is one for each channel, drawn log-uniformly.
        generator: Source of the initial values; torch's own when absent.
    """

    def __init__(
        self,
        d_model: int,
        d_state: int,
        *,
        frequency: Float[Tensor, " n"],
        B: Complex,
        bidirectional: bool,
        dt_min: float,
        dt_max: float,
        generator: torch.Generator | None,
    ) -> None:
        super().__init__(d_model, d_state, d_state // 2, bidirectional=bidirectional)
        self.n = len(frequency)
        columns = self.directions * self.n
        self.Lambda_re_log = nn.Parameter(torch.full((d_model, self.n), math.log(0.5)))
        self.Lambda_im = self.on_each_channel(frequency)
        self.B_re, self.B_im = self.on_each_channel(B.re), self.on_each_channel(B.im)
        self.C_re = nn.Parameter(torch.randn(d_model, columns, generator=generator) / math.sqrt(2))
        self.C_im = nn.Parameter(torch.randn(d_model, columns, generator=generator) / math.sqrt(2))
        self.D = nn.Parameter(torch.randn(d_model, generator=generator))
        self.log_step = nn.Parameter(log_uniform((d_model,), dt_min, dt_max, generator))

    def on_each_channel(self, values: Float[Tensor, " n"]) -> nn.Parameter:
        """A parameter that starts from the same values on every channel, (d_model, n)."""
        return nn.Parameter(values.to(torch.get_default_dtype()).repeat(self.d_model, 1))

    def kernel(self, time: int, C: Complex) -> Float[Tensor, "d_model time"]:
        """The answer of each channel to a single impulse, without the skip, float64."""
        raise NotImplementedError

    def direction_states(self, u: Inputs, *, reverse: bool) -> Float[Tensor, "batch time d_state"]:
        """Every state of one direction."""
        raise NotImplementedError

    def next_state(self, u_t: Input, h: CellState | None) -> CellState:
        """The state after one step."""
        raise NotImplementedError

    def forward(self, u: Inputs, lengths: Lengths | None = None) -> Inputs:
        padding = self._padding(u, lengths)
        u = _valid(u.to(self.D.dtype), padding)
        y = u * self.D
        with torch.autocast(u.device.type, enabled=False):
            for direction in range(self.directions):
                kernel = self.kernel(u.shape[1], self.output_vector(direction).to(torch.float64))
                y = y + convolve(u, kernel.to(u.dtype), reverse=direction == 1)
        return _valid(y, padding)

    def states(self, u: Inputs, lengths: Lengths | None = None) -> CellStates:
        padding = self._padding(u, lengths)
        u = _valid(u.to(self.D.dtype), padding)
        with torch.autocast(u.device.type, enabled=False):
            found = [self.direction_states(u, reverse=direction == 1) for direction in range(self.directions)]
        pairs = [h.view(*u.shape[:2], -1, 2) for h in found]
        return _valid(torch.stack(pairs, dim=-2).flatten(-3), padding)

    def step(self, u_t: Input, h: CellState | None = None) -> tuple[Input, CellState]:
        if self.directions == 2:
            raise ValueError("bidirectional is True: a cell that reads backwards in time cannot run step by step")
        self._check_width(u_t, time_axis=False)
        u_t = u_t.to(self.D.dtype)
        with torch.autocast(u_t.device.type, enabled=False):
            h = self.next_state(u_t, h)
            re, im = h.view(-1, self.d_model, self.n, 2).unbind(-1)
            C = self.output_vector(0)
            return 2 * (C.re * re - C.im * im).sum(-1) + u_t * self.D, h

    def diagonal(self) -> Complex:
        """Lambda, float64, (d_model, n)."""
        return Complex(-torch.exp(self.Lambda_re_log.double()), self.Lambda_im.double())

    def input_vector(self) -> Complex:
        """B, float64, (d_model, n)."""
        return Complex(self.B_re.double(), self.B_im.double())

    def output_vector(self, direction: int) -> Complex:
        """C of one direction, (d_model, n)."""
        columns = slice(direction * self.n, (direction + 1) * self.n)
        return Complex(self.C_re[:, columns], self.C_im[:, columns])

    def step_sizes(self) -> Float[Tensor, "d_model 1"]:
        """The length of a step in each channel, float64."""
        return torch.exp(self.log_step.double()).unsqueeze(-1)

    def recurrence_parameters(self) -> list[nn.Parameter]:
        """Lambda and the step sizes."""
        return [self.Lambda_re_log, self.Lambda_im, self.log_step]

    def input_parameters(self) -> list[nn.Parameter]:
        """B."""
        return [self.B_re, self.B_im]

    def output_parameters(self) -> list[nn.Parameter]:
        """C and D."""
        return [self.C_re, self.C_im, self.D]


def _valid(x: Tensor, padding: Tensor | None) -> Tensor:
    return x if padding is None else x.masked_fill(padding, 0.0)
