"""What is a RotRNN layer? Rotations with one decay per head and an input scaled to keep the state's length.

    P_h = expm(M_h - M_h^T),   A_h = P_h blockdiag(R(theta)) P_h^T,   decay_h = exp(-exp(gamma_log_h))
    h[t] = decay A h[t-1] + xi B u[t],   xi = sqrt((1 - decay^2) / tr(B^T B)),   y[t] = C [h of every head] + D * u[t]

Source: RotRNN, arXiv:2407.07239, and the authors' code, GitHub raresdolga/s5.
"""

import math
from typing import Literal

import torch
from torch import nn

from rotrnn_core.config import RotRNNConfig
from rotrnn_core.layers.cell import DiagonalCell
from rotrnn_core.layers.eigenform import Eigenform
from rotrnn_core.ops.normaliser import head_norm, stationary_scale
from rotrnn_core.ops.pairs import to_scan_order
from rotrnn_core.ops.rotation import rotation_from


class RotRNN(DiagonalCell):
    """The RotRNN cell, (batch, time, d_model) to the same.

    Parameters: M (n_heads, d_head, d_head), theta_log or theta (n_heads, d_head / 2), gamma_log (n_heads,),
    B (n_heads, d_head, d_model), C (d_model, directions * d_state), D (d_model,). The columns of C lie as the states
    do: head, direction, place in the head.

    Args:
        d_model: Width of input and output.
        d_state: Real numbers in the state of one direction; divisible by 2 * n_heads.
        n_heads: Parts of the state with a decay of their own.
        bidirectional: Run the same recurrence backwards in time as well.
        first_step: "exact" leaves sqrt(1 - decay^2) off the first input, so that E||h[t]||^2 = 1 per head for every
            t >= 1 under white input; "authors" scales every input alike, so that it is 1 - decay^(2t).
        init: "log-uniform" is the authors' training code: theta_log = log U(0, max_phase), gamma_log uniform between
            log(-log decay_max) and log(-log decay_min). "ring" is their appendix-style code: theta = U(0, max_phase)
            itself, decay^2 uniform between decay_min^2 and decay_max^2.
        decay_min: Least initial decay, in [0, 1); at least 1e-9 with "log-uniform".
        decay_max: Greatest initial decay, in (decay_min, 1).
        max_phase: Greatest initial angle per step, in radians.
        generator: Source of the initial values; torch's own when absent.

    Raises:
        ValueError: A value that cannot be right; the text holds it.
    """

    def __init__(
        self,
        d_model: int,
        d_state: int,
        n_heads: int,
        *,
        bidirectional: bool = False,
        first_step: Literal["exact", "authors"] = "exact",
        init: Literal["log-uniform", "ring"] = "log-uniform",
        decay_min: float = 0.9,
        decay_max: float = 0.999,
        max_phase: float = 6.28,
        generator: torch.Generator | None = None,
    ) -> None:
        RotRNNConfig(
            n_heads=n_heads,
            first_step=first_step,
            init=init,
            decay_min=decay_min,
            decay_max=decay_max,
            max_phase=max_phase,
        ).check_state(d_state)
        super().__init__(d_model, d_state, n_heads, bidirectional=bidirectional)
        self.first_step = first_step

        def uniform(*shape: int) -> torch.Tensor:
            return 1 - torch.rand(shape, generator=generator)

        def normal(*shape: int) -> torch.Tensor:
            return torch.randn(shape, generator=generator)

        theta = max_phase * uniform(n_heads, self.d_head // 2)
        M = normal(n_heads, self.d_head, self.d_head)
        B = normal(n_heads, self.d_head, d_model)
        C = normal(d_model, self.directions * d_state)
        if init == "log-uniform":
            lowest, highest = math.log(-math.log(decay_max)), math.log(-math.log(decay_min))
            self.theta_log = nn.Parameter(torch.log(theta))
            self.gamma_log = nn.Parameter(lowest + (highest - lowest) * uniform(n_heads))
            self.M = nn.Parameter(M / math.sqrt(d_state + self.d_head))
            self.B = nn.Parameter(B / math.sqrt(d_model + d_state))
            self.C = nn.Parameter(C / math.sqrt(d_model + d_state))
        else:
            squared = decay_min**2 + (decay_max**2 - decay_min**2) * uniform(n_heads)
            self.theta = nn.Parameter(theta)
            self.gamma_log = nn.Parameter(torch.log(-0.5 * torch.log(squared)))
            self.M = nn.Parameter(M)
            self.B = nn.Parameter(B / math.sqrt(d_model))
            self.C = nn.Parameter(C / math.sqrt(d_state))
        self.D = nn.Parameter(normal(d_model))

    def phases(self) -> torch.Tensor:
        """Angle per step of each pair, in radians, float64, (n_heads, d_head / 2)."""
        theta: torch.Tensor = self.theta.double() if hasattr(self, "theta") else torch.exp(self.theta_log.double())
        return theta

    def input_scale(self) -> torch.Tensor:
        """xi: the factor on each head's input, (n_heads,)."""
        nu = torch.exp(self.gamma_log.double())
        return (stationary_scale(nu) / head_norm(self.B)).to(self.B.dtype)

    def eigenform(self) -> Eigenform:
        """P taken into B and C: the scan sees rotations and decays alone."""
        P = rotation_from(self.M)
        nu = torch.exp(self.gamma_log.double())
        drive = P.mT @ (self.input_scale()[:, None, None] * self.B)
        C = self.C.view(self.d_model, self.n_heads, self.directions, self.d_head).permute(1, 2, 0, 3)
        read = (C @ P.unsqueeze(1)).permute(1, 2, 0, 3)
        pairs = self.d_head // 2
        first_gain = (1 / stationary_scale(nu)).to(self.B.dtype).repeat_interleave(pairs).repeat(2)
        return Eigenform(
            drive=to_scan_order(drive.flatten(0, 1), dim=0),
            read=to_scan_order(read.flatten(-2)),
            decay=torch.exp(-nu).repeat_interleave(pairs),
            phase=self.phases().flatten(),
            first_gain=first_gain if self.first_step == "exact" else None,
            basis=P,
        )

    def recurrence_parameters(self) -> list[nn.Parameter]:
        """M, the phases and the decays."""
        return [self.M, self.theta if hasattr(self, "theta") else self.theta_log, self.gamma_log]

    def input_parameters(self) -> list[nn.Parameter]:
        """B."""
        return [self.B]

    def output_parameters(self) -> list[nn.Parameter]:
        """C and D."""
        return [self.C, self.D]
