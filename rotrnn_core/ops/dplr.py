"""How does a diagonal plus low-rank system run in discrete time? As a matrix, by its structure, and as a kernel.

    x' = (Lambda - P P^H) x + B u,   y = C x                          complex states in conjugate pairs
    h[t] = (I - s A)^-1 ((I + s A) h[t-1] + step B u[t]),   s = step / 2                bilinear rule

One state of each pair is kept. P^H x is then twice the real part of the sum over those kept: linear over the real
numbers only, so that A is a real matrix over [re | im]. Everything is computed in float64.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from rotrnn_core.ops.complex import Complex
from rotrnn_core.ops.fourier import from_spectrum

Vector = Float[Tensor, "d_model two_n"]
States = Float[Tensor, "batch time d_model two_n"]
Matrix = Float[Tensor, "d_model two_n two_n"]
Kernel = Float[Tensor, "d_model time"]


@dataclass(frozen=True)
class System:
    """One system per channel, float64, with n complex states kept of 2 n.

    Args:
        Lambda: Diagonal, per unit of time, with negative real parts, (d_model, n).
        P: Low-rank vector, (d_model, n).
        B: Input vector, (d_model, n).
        step: Length of a step, (d_model, 1).
    """

    Lambda: Complex
    P: Complex
    B: Complex
    step: Float[Tensor, "d_model 1"]

    def matrix(self) -> Matrix:
        """A = Lambda - P P^H as a real matrix over [re | im]."""
        re, im = torch.diag_embed(self.Lambda.re), torch.diag_embed(self.Lambda.im)
        diagonal = torch.cat([torch.cat([re, -im], dim=-1), torch.cat([im, re], dim=-1)], dim=-2)
        P = self.P.side_by_side()
        return diagonal - 2 * P.unsqueeze(-1) * P.unsqueeze(-2)


def transition(system: System) -> tuple[Matrix, Vector]:
    """The recurrence as real matrices over [re | im]: h[t] = transition h[t-1] + drive u[t].

    Returns:
        (I - s A)^-1 (I + s A), (d_model, 2 n, 2 n), and (I - s A)^-1 step B, (d_model, 2 n).

    Source:
        S4, arXiv:2111.00396, equation 3.
    """
    half_step = system.step.unsqueeze(-1) / 2 * system.matrix()
    unit = torch.eye(half_step.shape[-1], dtype=half_step.dtype, device=half_step.device)
    drive = system.step * system.B.side_by_side()
    solved = torch.linalg.solve(unit - half_step, torch.cat([unit + half_step, drive.unsqueeze(-1)], dim=-1))
    return solved[..., :-1], solved[..., -1]


def advance(system: System, h: Complex, u: Float[Tensor, "batch d_model"]) -> Complex:
    """One step of the recurrence in a number of operations linear in n, without a matrix.

    The inverse of I - s A = (I - s Lambda) + s P P^H is taken by the Woodbury identity.

    Args:
        system: The systems.
        h: State before the step, (batch, d_model, n).
        u: Input of this step, (batch, d_model).

    Returns:
        State after the step, (batch, d_model, n).

    Source:
        S4, arXiv:2111.00396, appendix C.2.
    """
    s = system.step / 2
    slope = system.Lambda * h - system.P * _inner(system.P, h)
    x = h + slope * s + system.B * (system.step * u.unsqueeze(-1))
    inverse = Complex(1 - s * system.Lambda.re, -s * system.Lambda.im).reciprocal()
    x, P = inverse * x, inverse * system.P
    return x - P * (s * _inner(system.P, x) / (1 + s * _inner(system.P, P)))


def run(system: System, u: Float[Tensor, "batch time d_model"], *, reverse: bool = False) -> States:
    """Every state of whole sequences from a zero state, one step after another.

    Args:
        system: The systems.
        u: Input, (batch, time, d_model).
        reverse: Run from the last step to the first.

    Returns:
        Every state at its own place in time as [re | im], (batch, time, d_model, 2 n), in u's dtype.
    """
    matrix, drive = (part.to(u.dtype) for part in transition(system))
    turn = matrix.mT
    h = u.new_zeros(u.shape[2], u.shape[0], matrix.shape[-1])
    states = []
    steps = u.unbind(1)
    for now in reversed(steps) if reverse else steps:
        h = torch.baddbmm(now.T.unsqueeze(-1) * drive.unsqueeze(-2), h, turn)
        states.append(h)
    return torch.stack(states[::-1] if reverse else states, dim=1).permute(2, 1, 0, 3)


def kernel_step_by_step(system: System, C: Complex, time: int) -> Kernel:
    """The answer to a single impulse, one step after another.

        kernel[l] = C transition^l drive

    This is the definition: slow, and the yardstick that the faster form must match.

    Args:
        system: The systems.
        C: Output vector, (d_model, n).
        time: Number of lags.

    Returns:
        Weight of each lag, (d_model, time).
    """
    matrix, state = transition(system)
    weights = []
    for _ in range(time):
        weights.append((_real_row(C) * state).sum(-1))
        state = (matrix @ state.unsqueeze(-1)).squeeze(-1)
    return torch.stack(weights, dim=-1)


def kernel_by_resolvent(system: System, C: Complex, time: int) -> Kernel:
    """The same kernel from its generating function at the roots of unity; the promise is `kernel_step_by_step`'s.

        sum over l < time of kernel[l] z^l = C (I - transition^time) (I - z transition)^-1 drive,   z^time = 1

    With z = exp(2 i a) the resolvent of the diagonal part is, up to a factor, 1 / E where
    E = -2 i sin(a) - step cos(a) Lambda. A Cauchy sum over 1 / E for each of (C, B), (C, P), (P, B), (P, P) and the
    Woodbury identity give the whole.

    Source:
        S4, arXiv:2111.00396, appendix C.3; written so that the pole of its form at z = -1 does not arise.
    """
    matrix, _ = transition(system)
    row = _real_row(C)
    cut = row - (row.unsqueeze(-2) @ torch.linalg.matrix_power(matrix, time)).squeeze(-2)
    C, P = _complex_row(cut), system.P.conj()
    a = -torch.pi / time * torch.arange(time // 2 + 1, dtype=matrix.dtype, device=matrix.device)
    damping = system.step * torch.cos(a)
    E = Complex(
        -damping.unsqueeze(-2) * _both(system.Lambda).re.unsqueeze(-1),
        -2 * torch.sin(a) - damping.unsqueeze(-2) * _both(system.Lambda).im.unsqueeze(-1),
    )
    pairs = [C * system.B, C * system.P, P * system.B, P * system.P]
    CB, CP, PB, PP = _cauchy(pairs, E.reciprocal())
    woodbury = Complex(1 + damping * PP.re, damping * PP.im).reciprocal()
    spectrum = (CB - CP * PB * woodbury * damping) * Complex(torch.cos(a), -torch.sin(a)) * system.step
    return from_spectrum(spectrum.re, spectrum.im, time)


def _cauchy(weights: list[Complex], inverse: Complex) -> list[Complex]:
    """Sums over both members of each pair of weight / E, (d_model, frequencies) for each of the weights."""
    both = [_both(weight) for weight in weights]
    re, im = torch.stack([w.re for w in both], dim=-2), torch.stack([w.im for w in both], dim=-2)
    sums = Complex(re @ inverse.re - im @ inverse.im, re @ inverse.im + im @ inverse.re)
    return [Complex(*parts) for parts in zip(sums.re.unbind(-2), sums.im.unbind(-2), strict=True)]


def _both(kept: Complex) -> Complex:
    """The states kept, then their conjugates."""
    return Complex(torch.cat([kept.re, kept.re], dim=-1), torch.cat([kept.im, -kept.im], dim=-1))


def _inner(a: Complex, b: Complex) -> Tensor:
    """a^H b over both members of each pair, real, with a last axis of 1."""
    return 2 * (a.re * b.re + a.im * b.im).sum(-1, keepdim=True)


def _real_row(C: Complex) -> Vector:
    """C over both members of each pair as a real row over [re | im]."""
    return torch.cat([2 * C.re, -2 * C.im], dim=-1)


def _complex_row(row: Vector) -> Complex:
    """Undo `_real_row`."""
    re, im = row.chunk(2, dim=-1)
    return Complex(re / 2, -im / 2)
