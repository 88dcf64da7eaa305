"""What do the papers' equations say, one step after another? The yardstick of both layers, in nothing they share.

LRU runs in complex numbers; RotRNN forms its orthogonal matrix A and applies it. Slow, and differentiable.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from rotrnn_core.equivalence.conversion import ScaledRotRNN
from rotrnn_core.layers import LRU, RotRNN
from rotrnn_core.notation import Inputs

Found = tuple[Inputs, Float[Tensor, "batch time states"]]


def by_equations(cell: LRU | RotRNN, u: Inputs) -> Found:
    """Outputs and states of a cell, as its layer gives them."""
    return lru_by_equations(cell, u) if isinstance(cell, LRU) else rotrnn_by_equations(cell, u)


def lru_by_equations(lru: LRU, u: Inputs) -> Found:
    """h[t] = lambda * h[t-1] + gamma (B u[t]),   y[t] = Re(C h[t]) + D * u[t]

    Source:
        LRU, arXiv:2303.06349, section 3.
    """
    eigenvalue = torch.exp(torch.complex(-torch.exp(lru.nu_log), torch.exp(lru.theta_log)))
    tied = lru.normaliser == "tied"
    scale = torch.sqrt(1 - eigenvalue.abs().square()) if tied else torch.exp(lru.gamma_log)
    B, C = torch.complex(lru.B_re, lru.B_im), torch.complex(lru.C_re, lru.C_im)

    def run(u: Tensor) -> Tensor:
        h = torch.zeros(len(u), len(eigenvalue), dtype=B.dtype)
        states = []
        for now in u.unbind(1):
            h = eigenvalue * h + scale * (now.to(B.dtype) @ B.mT)
            states.append(h)
        return torch.stack(states, dim=1)

    h = _each_direction(run, u, lru.directions)
    outputs = (torch.cat(h, dim=-1) @ C.mT).real + lru.D * u
    return outputs, torch.view_as_real(torch.stack(h, dim=-1)).flatten(-3)


def rotrnn_by_equations(rotrnn: RotRNN, u: Inputs) -> Found:
    """h[t] = decay A h[t-1] + xi B u[t],   y[t] = C h[t] + D * u[t],   A = P Theta P^T

    With first_step "exact" the first input takes xi / sqrt(1 - decay^2).

    Source:
        RotRNN, arXiv:2407.07239, section 3.
    """
    nu = torch.exp(rotrnn.gamma_log)
    decay = torch.exp(-nu)
    norm = rotrnn.B.square().sum((1, 2)).sqrt()
    # 1 - decay^2 without the digits that the subtraction would lose
    usual = torch.sqrt(-torch.expm1(-2 * nu)) / norm
    if isinstance(rotrnn, ScaledRotRNN):
        usual = torch.exp(rotrnn.xi_log)
    first = 1 / norm if rotrnn.first_step == "exact" else usual
    P = torch.linalg.matrix_exp(rotrnn.M - rotrnn.M.mT)
    phases = rotrnn.theta if hasattr(rotrnn, "theta") else torch.exp(rotrnn.theta_log)
    turns = [
        torch.block_diag(*map(_turn, angles))  # type: ignore[no-untyped-call]
        for angles in phases
    ]
    A = P @ torch.stack(turns) @ P.mT

    def run(u: Tensor) -> Tensor:
        h = torch.zeros(len(u), rotrnn.n_heads, rotrnn.d_head, dtype=u.dtype)
        states = []
        for time, now in enumerate(u.unbind(1)):
            xi = usual if time else first
            driven = torch.einsum("h,him,bm->bhi", xi, rotrnn.B, now)
            h = decay.unsqueeze(-1) * torch.einsum("hij,bhj->bhi", A, h) + driven
            states.append(h)
        return torch.stack(states, dim=1)

    states = torch.stack(_each_direction(run, u, rotrnn.directions), dim=-2).flatten(-3)
    return states @ rotrnn.C.mT + rotrnn.D * u, states


def _turn(angle: Tensor) -> Tensor:
    """The rotation of the plane by an angle."""
    cos, sin = torch.cos(angle), torch.sin(angle)
    return torch.stack([torch.stack([cos, -sin]), torch.stack([sin, cos])])


def _each_direction(run: Callable[[Tensor], Tensor], u: Tensor, directions: int) -> list[Tensor]:
    return [run(u)] if directions == 1 else [run(u), run(u.flip(1)).flip(1)]
