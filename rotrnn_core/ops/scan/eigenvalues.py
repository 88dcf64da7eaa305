"""What do the scans need of the eigenvalues decay * exp(i phase)? Always taken in float64; they are few."""

from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from rotrnn_core.notation import State

Pairs: TypeAlias = Float[Tensor, " pairs"]
"""One number for each pair of a state."""


def split_eigenvalues(decay: Pairs, phase: Pairs, dtype: torch.dtype) -> Float[Tensor, "4 pairs"]:
    """Real part, its rest, imaginary part, its rest: in dtype each, and to float64's precision the two of a part."""
    re, im = _parts(decay, phase)
    rounded = [re.to(dtype), im.to(dtype)]
    rests = [(part - near.double()).to(dtype) for part, near in zip((re, im), rounded, strict=True)]
    return torch.stack([rounded[0], rests[0], rounded[1], rests[1]])


def turned(z: State, decay: Pairs, phase: Pairs, *, back: bool = False) -> State:
    """eigenvalue * z, pair by pair, or with the conjugate when `back`; in z's dtype."""
    a, b = _parts(decay, phase)
    b = -b if back else b
    re, im = z.double().chunk(2, dim=-1)
    return torch.cat([a * re - b * im, a * im + b * re], dim=-1).to(z.dtype)


def correlated(later: State, earlier: State) -> Float[Tensor, " d_state"]:
    """Sums over the batch of the products of equal, and then of crossed, components of each pair, in float64."""
    x, y = later.double().chunk(2, dim=-1)
    re, im = earlier.double().chunk(2, dim=-1)
    return torch.cat([x * re + y * im, y * re - x * im], dim=-1).sum(0)


def eigenvalue_gradients(sums: Float[Tensor, " d_state"], decay: Pairs, phase: Pairs) -> tuple[Pairs, Pairs]:
    """Gradients of decay and phase from `correlated`, summed over time: of each adjoint with the state before it."""
    along, across = sums.chunk(2)
    angle, modulus = phase.double(), decay.double()
    cos, sin = torch.cos(angle), torch.sin(angle)
    return (cos * along + sin * across).to(decay.dtype), (modulus * (cos * across - sin * along)).to(phase.dtype)


def _parts(decay: Pairs, phase: Pairs) -> tuple[Tensor, Tensor]:
    modulus, angle = decay.double(), phase.double()
    return modulus * torch.cos(angle), modulus * torch.sin(angle)
