"""What is an LRU layer? A diagonal complex recurrence with a normaliser on its input, kept in real pairs.

    lambda = exp(-exp(nu_log) + i exp(theta_log))
    h[t] = lambda * h[t-1] + exp(gamma_log) * (B u[t]),   y[t] = Re(C h[t]) + D * u[t]

Source: LRU, arXiv:2303.06349, sections 3.3-3.4 and appendix A.
"""

import math
from typing import Literal

import torch
from torch import nn

from rotrnn_core.config import LRUConfig
from rotrnn_core.layers.cell import DiagonalCell
from rotrnn_core.layers.eigenform import Eigenform
from rotrnn_core.ops.normaliser import stationary_scale


class LRU(DiagonalCell):
    """The LRU cell, (batch, time, d_model) to the same; each complex channel is a head of two real numbers.

    Parameters: nu_log, theta_log, gamma_log (d_state / 2,), B_re, B_im (d_state / 2, d_model),
    C_re, C_im (d_model, directions * d_state / 2), D (d_model,). The columns of C lie by direction, then channel.
    With normaliser "tied" there is no gamma_log.

    Args:
        d_model: Width of input and output.
        d_state: Real numbers in the state of one direction: twice the complex channels.
        bidirectional: Run the same recurrence backwards in time as well.
        normaliser: "learned" trains gamma_log freely from its initial value log sqrt(1 - |lambda|^2), as the paper
            does; "tied" recomputes it from lambda at each call.
        r_min: Least initial modulus, in [0, 1).
        r_max: Greatest initial modulus, in (r_min, 1).
        max_phase: Greatest initial angle per step, in radians.
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
        normaliser: Literal["learned", "tied"] = "learned",
        r_min: float = 0.0,
        r_max: float = 0.99,
        max_phase: float = 6.28,
        generator: torch.Generator | None = None,
    ) -> None:
        LRUConfig(normaliser=normaliser, r_min=r_min, r_max=r_max, max_phase=max_phase).check_state(d_state)
        super().__init__(d_model, d_state, d_state // 2, bidirectional=bidirectional)
        self.normaliser = normaliser
        channels = d_state // 2

        def uniform(*shape: int) -> torch.Tensor:
            return 1 - torch.rand(shape, generator=generator)

        def normal(*shape: int) -> torch.Tensor:
            return torch.randn(shape, generator=generator)

        squared = r_min**2 + (r_max**2 - r_min**2) * uniform(channels)
        self.nu_log = nn.Parameter(torch.log(-0.5 * torch.log(squared)))
        self.theta_log = nn.Parameter(torch.log(max_phase * uniform(channels)))
        if normaliser == "learned":
            self.gamma_log = nn.Parameter(torch.log(stationary_scale(torch.exp(self.nu_log.detach()))))
        self.B_re = nn.Parameter(normal(channels, d_model) / math.sqrt(2 * d_model))
        self.B_im = nn.Parameter(normal(channels, d_model) / math.sqrt(2 * d_model))
        self.C_re = nn.Parameter(normal(d_model, self.directions * channels) / math.sqrt(channels))
        self.C_im = nn.Parameter(normal(d_model, self.directions * channels) / math.sqrt(channels))
        self.D = nn.Parameter(normal(d_model))

    def eigenform(self) -> Eigenform:
        """Real and imaginary parts as the two halves of the scan."""
        nu = torch.exp(self.nu_log.double())
        scale = torch.exp(self.gamma_log) if self.normaliser == "learned" else stationary_scale(nu).to(self.B_re.dtype)
        shape = (self.d_model, self.directions, self.d_state // 2)
        return Eigenform(
            drive=torch.cat([self.B_re, self.B_im]) * scale.repeat(2).unsqueeze(-1),
            read=torch.cat([self.C_re.view(shape), -self.C_im.view(shape)], dim=-1).transpose(0, 1),
            decay=torch.exp(-nu),
            phase=torch.exp(self.theta_log.double()),
        )

    def recurrence_parameters(self) -> list[nn.Parameter]:
        """Modulus, phase and, where it is learned, the normaliser."""
        learned = [self.gamma_log] if self.normaliser == "learned" else []
        return [self.nu_log, self.theta_log, *learned]

    def input_parameters(self) -> list[nn.Parameter]:
        """B."""
        return [self.B_re, self.B_im]

    def output_parameters(self) -> list[nn.Parameter]:
        """C and D."""
        return [self.C_re, self.C_im, self.D]
