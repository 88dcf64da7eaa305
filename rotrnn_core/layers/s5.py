"""What is an S5 layer? One diagonal complex system with many inputs and outputs, discretised, kept in real pairs.

    lambda_bar = exp(Lambda step),   B_bar = (lambda_bar - 1) / Lambda * B                     zero-order hold
    h[t] = lambda_bar * h[t-1] + B_bar u[t],   y[t] = 2 Re(C h[t]) + D * u[t]    (without the 2 when free)

Source: S5, arXiv:2208.04933, and the authors' code, GitHub lindermanlab/S5.
"""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from rotrnn_core.cells import S5Config
from rotrnn_core.layers.cell import DiagonalCell
from rotrnn_core.layers.eigenform import Eigenform
from rotrnn_core.ops.complex import Complex
from rotrnn_core.ops.discretise import zero_order_hold
from rotrnn_core.ops.hippo import legs_eigenbasis, log_uniform

TRUNCATED_DEVIATION = 0.8796256610342398
"""Standard deviation of a standard normal variable kept within [-2, 2]."""


class S5(DiagonalCell):
    """The S5 cell, (batch, time, d_model) to the same; each complex channel is a head of two real numbers.

    Parameters: Lambda_re, Lambda_im, log_step (d_state / 2,), B_re, B_im (d_state / 2, d_model),
    C_re, C_im (d_model, directions * d_state / 2), D (d_model,): in all
    d_state (3/2 + (1 + directions) d_model) + d_model numbers. The columns of C lie by direction, then channel.

    Args:
        d_model: Width of input and output.
        d_state: Real numbers in the state of one direction: twice the complex channels that are kept. Where the paper
            writes P complex states with conjugate symmetry, half of them are kept and d_state = P.
        bidirectional: Run the same recurrence backwards in time as well.
        n_blocks: Blocks of the initial system, J in the paper; each starts from HiPPO-N of its own size.
        conjugates: "paired" keeps one of each conjugate pair and reads out 2 Re(C h); "free" keeps all, without
            holding them to each other.
        dt_min: Least initial step size.
        dt_max: Greatest initial step size; there is one for each complex channel, drawn log-uniformly.
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
        n_blocks: int = 1,
        conjugates: Literal["paired", "free"] = "paired",
        dt_min: float = 0.001,
        dt_max: float = 0.1,
        generator: torch.Generator | None = None,
    ) -> None:
        config = S5Config(n_blocks=n_blocks, conjugates=conjugates, dt_min=dt_min, dt_max=dt_max)
        config.check_sizes(d_model, d_state)
        super().__init__(d_model, d_state, d_state // 2, bidirectional=bidirectional)
        self.conjugates = conjugates
        channels = d_state // 2
        whole = d_state if conjugates == "paired" else channels
        basis = legs_eigenbasis(whole // n_blocks)
        if conjugates == "paired":
            basis = basis.upper_half()
        dtype = torch.get_default_dtype()
        self.Lambda_re = nn.Parameter(torch.full((channels,), -0.5))
        self.Lambda_im = nn.Parameter(basis.frequency.repeat(n_blocks).to(dtype))

        def truncated_normal(*shape: int) -> Tensor:
            values = torch.empty(shape, dtype=torch.float64)
            nn.init.trunc_normal_(values, a=-2, b=2, generator=generator)
            return values / (math.sqrt(whole) * TRUNCATED_DEVIATION)

        B = [basis.enter(block) for block in truncated_normal(n_blocks, whole // n_blocks, d_model)]
        self.B_re = nn.Parameter(torch.cat([block.re for block in B]).to(dtype))
        self.B_im = nn.Parameter(torch.cat([block.im for block in B]).to(dtype))
        shape = (d_model, self.directions, n_blocks, whole // n_blocks)
        C = basis.read(Complex(truncated_normal(*shape), truncated_normal(*shape))).to(dtype)
        self.C_re, self.C_im = nn.Parameter(C.re.flatten(1)), nn.Parameter(C.im.flatten(1))
        self.D = nn.Parameter(torch.randn(d_model, generator=generator))
        self.log_step = nn.Parameter(log_uniform((channels,), dt_min, dt_max, generator))

    def eigenform(self) -> Eigenform:
        """Discretised; real and imaginary parts as the two halves of the scan."""
        discrete = zero_order_hold(Complex(self.Lambda_re, self.Lambda_im), torch.exp(self.log_step.double()))
        drive = (discrete.gain.unsqueeze(-1) * Complex(self.B_re.double(), self.B_im.double())).to(self.B_re.dtype)
        shape = (self.d_model, self.directions, self.d_state // 2)
        read = torch.cat([self.C_re.view(shape), -self.C_im.view(shape)], dim=-1).transpose(0, 1)
        return Eigenform(
            drive=torch.cat([drive.re, drive.im]),
            read=2 * read if self.conjugates == "paired" else read,
            decay=discrete.decay,
            phase=discrete.phase,
        )

    def recurrence_parameters(self) -> list[nn.Parameter]:
        """Lambda and the step sizes."""
        return [self.Lambda_re, self.Lambda_im, self.log_step]

    def input_parameters(self) -> list[nn.Parameter]:
        """B."""
        return [self.B_re, self.B_im]

    def output_parameters(self) -> list[nn.Parameter]:
        """C and D."""
        return [self.C_re, self.C_im, self.D]
