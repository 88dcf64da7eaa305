"""Where do S4, S4D and S5 start? HiPPO-LegS, its normal part, and the eigenvalues of that; at initialisation only.

    A[n, k] = -sqrt((2n + 1)(2k + 1)) for n > k,   -(n + 1) for n = k,   0 for n < k,      B[n] = sqrt(2n + 1)
    A = N - P P^T with P[n] = sqrt(n + 1/2):   N = -I/2 + a skew matrix = V diag(-1/2 + i w) V^H, V unitary

Source: HiPPO, arXiv:2008.07669; S4, arXiv:2111.00396, appendix C; S5, arXiv:2208.04933.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from rotrnn_core.ops.complex import Complex


def legs(n: int) -> tuple[Float[Tensor, "n n"], Float[Tensor, " n"]]:
    """The HiPPO-LegS matrices A and B of order n, float64."""
    root = torch.sqrt(2 * torch.arange(n, dtype=torch.float64) + 1)
    order = torch.arange(1, n + 1, dtype=torch.float64)
    return -torch.tril(torch.outer(root, root), diagonal=-1) - torch.diag(order), root


def low_rank(n: int) -> Float[Tensor, " n"]:
    """The vector P for which A + P P^T is normal, float64."""
    return torch.sqrt(torch.arange(n, dtype=torch.float64) + 0.5)


@dataclass(frozen=True)
class Eigenbasis:
    """The normal part of HiPPO-LegS, diagonal: eigenvalues -1/2 + i w, ascending in w, and their eigenvectors.

    Args:
        frequency: w, float64, (kept,); all n of them are odd symmetric: the upper half is one of each conjugate pair.
        V_re: Real part of the eigenvectors, one a column, float64, (n, kept).
        V_im: Imaginary part, likewise. The phase of each column is fixed by V[0] being real and positive.
    """

    frequency: Float[Tensor, " kept"]
    V_re: Float[Tensor, "n kept"]
    V_im: Float[Tensor, "n kept"]

    def upper_half(self) -> "Eigenbasis":
        """One of each conjugate pair, the one with w > 0; n must be even."""
        half = len(self.frequency) // 2
        return Eigenbasis(self.frequency[half:], self.V_re[:, half:], self.V_im[:, half:])

    def enter(self, x: Float[Tensor, "n *columns"]) -> Complex:
        """V^H x of real columns x."""
        return Complex(self.V_re.T @ x, -self.V_im.T @ x)

    def read(self, c: Complex) -> Complex:
        """c V of complex rows c."""
        return Complex(c.re @ self.V_re - c.im @ self.V_im, c.re @ self.V_im + c.im @ self.V_re)


def legs_eigenbasis(n: int) -> Eigenbasis:
    """Eigenvalues and eigenvectors of the normal part of HiPPO-LegS of order n."""
    A, _ = legs(n)
    P = low_rank(n)
    skew = A + torch.outer(P, P) + 0.5 * torch.eye(n, dtype=torch.float64)
    frequency, V = torch.linalg.eigh(-1j * skew.to(torch.complex128))
    V = V * torch.conj(torch.sgn(V[0]))
    return Eigenbasis(frequency, V.real.clone(), V.imag.clone())


def log_uniform(shape: tuple[int, ...], low: float, high: float, generator: torch.Generator | None = None) -> Tensor:
    """Logarithms of step sizes drawn log-uniformly from [low, high]."""
    return math.log(low) + math.log(high / low) * torch.rand(shape, generator=generator)
