"""What is an S4D layer? A diagonal complex system per channel, discretised; a convolution, or a recurrence.

    x' = Lambda x + B u,   y = 2 Re(C x) + D u          for each channel, one of each conjugate pair kept

Source: S4D, arXiv:2206.11893, and the authors' code, GitHub state-spaces/s4.
"""

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from rotrnn_core.cells import S4DConfig
from rotrnn_core.layers.channels import ChannelCell
from rotrnn_core.notation import CellState, Drive, Input, Inputs
from rotrnn_core.ops.complex import Complex
from rotrnn_core.ops.diagonal_kernel import kernel_from_two_levels
from rotrnn_core.ops.discretise import DISCRETISATIONS, Discrete
from rotrnn_core.ops.hippo import legs, legs_eigenbasis
from rotrnn_core.ops.pairs import to_heads_order, to_scan_order
from rotrnn_core.ops.scan import scan


class S4D(ChannelCell):
    """The S4D cell, (batch, time, d_model) to the same, with n = d_state / (2 d_model) complex states per channel.

    Parameters: those of ChannelCell, in all d_state (2 + directions) + 2 d_model numbers. Where the paper writes a
    state of N, n = N / 2.

    Args:
        d_model: Width of input and output: the number of systems.
        d_state: Real numbers in the state of one direction, all channels together; divisible by 2 d_model.
        bidirectional: Run the same systems backwards in time as well; the step itself counts in both directions.
        init: "legs" takes the eigenvalues of the normal part of HiPPO-LegS, -1/2 + i w, and its B in the eigenbasis;
            "lin" takes -1/2 + i pi k, k = 0 .. n - 1, and B = 1.
        discretisation: "zoh", zero-order hold, or "bilinear".
        dt_min: Least initial step size.
        dt_max: Greatest initial step size; there is one for each channel, drawn log-uniformly.
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
        init: Literal["legs", "lin"] = "legs",
        discretisation: Literal["zoh", "bilinear"] = "zoh",
        dt_min: float = 0.001,
        dt_max: float = 0.1,
        generator: torch.Generator | None = None,
    ) -> None:
        config = S4DConfig(init=init, discretisation=discretisation, dt_min=dt_min, dt_max=dt_max)
        config.check_sizes(d_model, d_state)
        n = d_state // (2 * d_model)
        if init == "legs":
            basis = legs_eigenbasis(2 * n).upper_half()
            frequency, B = basis.frequency, basis.enter(legs(2 * n)[1])
        else:
            frequency = math.pi * torch.arange(n, dtype=torch.float64)
            B = Complex(torch.ones(n), torch.zeros(n))
        super().__init__(
            d_model,
            d_state,
            frequency=frequency,
            B=B,
            bidirectional=bidirectional,
            dt_min=dt_min,
            dt_max=dt_max,
            generator=generator,
        )
        self.discretisation = discretisation

    def discrete(self) -> Discrete:
        """The systems in discrete time, from the parameters as they are now, (d_model, n)."""
        return DISCRETISATIONS[self.discretisation](self.diagonal(), self.step_sizes())

    def kernel(self, time: int, C: Complex) -> Float[Tensor, "d_model time"]:
        discrete = self.discrete()
        weight = C * discrete.gain * self.input_vector()
        return kernel_from_two_levels(discrete.decay, discrete.phase, weight, time)

    def direction_states(self, u: Inputs, *, reverse: bool) -> Float[Tensor, "batch time d_state"]:
        discrete = self.discrete()
        drive = self._drive(discrete, u)
        found = scan(drive, discrete.decay.flatten(), discrete.phase.flatten(), reverse=reverse, backend=self.backend)
        return to_heads_order(found)

    def next_state(self, u_t: Input, h: CellState | None) -> CellState:
        discrete = self.discrete()
        drive = self._drive(discrete, u_t.unsqueeze(1))
        before = None if h is None else to_scan_order(h)
        decay, phase = discrete.decay.flatten(), discrete.phase.flatten()
        return to_heads_order(scan(drive, decay, phase, before, backend=self.backend).squeeze(1))

    def _drive(self, discrete: Discrete, u: Inputs) -> Drive:
        drive = (discrete.gain * self.input_vector()).to(u.dtype) * u.unsqueeze(-1)
        return torch.cat([drive.re.flatten(-2), drive.im.flatten(-2)], dim=-1)
