"""What does a diagonal system answer to a single impulse? Its convolution kernel, a sum of powers of eigenvalues.

kernel[c, l] = 2 Re( sum over n of weight[c, n] eigenvalue[c, n]^l )
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from rotrnn_core.ops.complex import Complex

Channels = Float[Tensor, "d_model n"]
Kernel = Float[Tensor, "d_model time"]


def kernel_from_every_power(decay: Channels, phase: Channels, weight: Complex, time: int) -> Kernel:
    """Sum the powers lag by lag.

    This is the definition: it forms every power of every eigenvalue, and is the yardstick of the faster form.

    Args:
        decay: Modulus of the eigenvalues, (d_model, n).
        phase: Angle of the eigenvalues, in radians, (d_model, n).
        weight: Read-out times input factor, (d_model, n).
        time: Number of lags.

    Returns:
        Weight of each lag, float64, (d_model, time).

    Source:
        S4D, arXiv:2206.11893, section 3 (a Vandermonde product), with conjugate pairs taken together.
    """
    every = _powers(decay, phase, torch.arange(time, device=decay.device))
    return 2 * (weight.unsqueeze(-1) * every).re.sum(-2)


def kernel_from_two_levels(decay: Channels, phase: Channels, weight: Complex, time: int) -> Kernel:
    """Split each lag into coarse * length + fine, so that about 2 sqrt(time) powers and one product do.

    The promise is `kernel_from_every_power`'s, gradients included.
    """
    length = max(1, math.isqrt(time))
    count = -(-time // length)
    fine = _powers(decay, phase, torch.arange(length, device=decay.device))
    coarse = weight.unsqueeze(-1) * _powers(decay, phase, torch.arange(count, device=decay.device) * length)
    product = coarse.re.mT @ fine.re - coarse.im.mT @ fine.im
    return 2 * product.flatten(-2)[:, :time]


def _powers(decay: Channels, phase: Channels, exponents: Tensor) -> Complex:
    """eigenvalue^exponent, float64, (d_model, n, exponents)."""
    modulus = decay.double().unsqueeze(-1) ** exponents
    angle = phase.double().unsqueeze(-1) * exponents
    return Complex(modulus * torch.cos(angle), modulus * torch.sin(angle))
