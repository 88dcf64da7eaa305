"""How does a continuous diagonal system become a recurrence? By zero-order hold or by the bilinear rule.

    x' = Lambda x + b u   ->   h[t] = eigenvalue h[t-1] + gain b u[t],    eigenvalue = decay exp(i phase)

Everything is computed in float64: the values are few, and later steps take powers of them.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from rotrnn_core.ops.complex import Complex


@dataclass(frozen=True)
class Discrete:
    """A diagonal system in discrete time, float64, in the shape of its eigenvalues.

    Args:
        decay: Modulus of the eigenvalues, dimensionless.
        phase: Angle of the eigenvalues, in radians.
        gain: Factor on the input.
    """

    decay: Float[Tensor, "*shape"]
    phase: Float[Tensor, "*shape"]
    gain: Complex


def zero_order_hold(Lambda: Complex, step: Tensor) -> Discrete:
    """eigenvalue = exp(Lambda step), gain = (exp(Lambda step) - 1) / Lambda, exact for small steps too.

    Args:
        Lambda: Eigenvalues per unit of time, none of them 0; their real parts are negative in a stable system.
        step: Length of a step, positive, broadcast against Lambda.

    Source:
        S5, arXiv:2208.04933, equation 6.
    """
    Lambda, step = Lambda.to(torch.float64), step.double()
    exponent = Lambda * step
    decay = torch.exp(exponent.re)
    # exp(z) - 1 = expm1(re z) cos(im z) - 2 sin(im z / 2)^2 + i exp(re z) sin(im z)
    cosine_less_1 = -2 * torch.sin(exponent.im / 2).square()
    rise = Complex(torch.expm1(exponent.re) * torch.cos(exponent.im) + cosine_less_1, decay * torch.sin(exponent.im))
    return Discrete(decay, exponent.im, rise * Lambda.reciprocal())


def bilinear(Lambda: Complex, step: Tensor) -> Discrete:
    """eigenvalue = (1 + Lambda step / 2) / (1 - Lambda step / 2), gain = step / (1 - Lambda step / 2).

    Args:
        Lambda: Eigenvalues per unit of time; their real parts are negative in a stable system.
        step: Length of a step, positive, broadcast against Lambda.

    Source:
        S4, arXiv:2111.00396, equation 3.
    """
    step = step.double()
    half = Lambda.to(torch.float64) * (step / 2)
    above, below = Complex(1 + half.re, half.im), Complex(1 - half.re, -half.im)
    decay = torch.sqrt(above.squared_modulus() / below.squared_modulus())
    phase = torch.atan2(above.im, above.re) - torch.atan2(below.im, below.re)
    return Discrete(decay, phase, below.reciprocal() * step)


DISCRETISATIONS = {"zoh": zero_order_hold, "bilinear": bilinear}
"""The rules by the name that a configuration gives them."""
