"""Where do complex numbers live? Inside these transforms only: what autograd keeps and passes on is real."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from rotrnn_core.notation import Inputs

Kernel = Float[Tensor, "d_model time"]
Spectrum = Float[Tensor, "d_model frequencies"]


def convolve_directly(u: Inputs, kernel: Kernel, *, reverse: bool = False) -> Inputs:
    """Convolve each channel with its kernel, one lag after another.

        y[t] = sum over lag of kernel[lag] u[t - lag]

    This is the definition: slow, and the yardstick that the faster form must match.

    Args:
        u: Input, (batch, time, d_model); zero outside.
        kernel: Weight of each lag, (d_model, time).
        reverse: Look ahead instead: u[t + lag].

    Returns:
        Output, (batch, time, d_model).
    """
    time = u.shape[1]
    y = torch.zeros_like(u)
    for lag in range(time):
        shifted = u[:, lag:] if reverse else u[:, : time - lag]
        padding = (0, 0, 0, lag) if reverse else (0, 0, lag, 0)
        y = y + torch.nn.functional.pad(shifted, padding) * kernel[:, lag]
    return y


def convolve(u: Inputs, kernel: Kernel, *, reverse: bool = False) -> Inputs:
    """Convolve by Fourier transform; the promise is `convolve_directly`'s, gradients included."""
    y: Tensor = _Convolution.apply(u, kernel, reverse)  # type: ignore[no-untyped-call]
    return y


def from_spectrum(re: Spectrum, im: Spectrum, time: int) -> Kernel:
    """The real sequence of `time` values whose discrete Fourier transform begins with re + i im.

    Args:
        re: Real part at the first time // 2 + 1 frequencies, (d_model, frequencies).
        im: Imaginary part there.
        time: Length of the sequence.

    Returns:
        The sequence, (d_model, time).
    """
    kernel: Tensor = _FromSpectrum.apply(re, im, time)  # type: ignore[no-untyped-call]
    return kernel


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, kernel: Tensor, reverse: bool) -> Tensor:
        ctx.save_for_backward(u, kernel)
        ctx.reverse = reverse
        along, weights = _spectrum(u), _spectrum(kernel.T)
        return _back(along * (weights.conj() if reverse else weights), u.shape[1])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        u, kernel = ctx.saved_tensors
        time = u.shape[1]
        along = _spectrum(grad)
        u_grad = kernel_grad = None
        if ctx.needs_input_grad[0]:
            weights = _spectrum(kernel.T)
            u_grad = _back(along * (weights if ctx.reverse else weights.conj()), time)
        if ctx.needs_input_grad[1]:
            driven = _spectrum(u)
            correlation = along.conj() * driven if ctx.reverse else along * driven.conj()
            kernel_grad = _back(correlation.sum(0), time).T
        return u_grad, kernel_grad, None


class _FromSpectrum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, re: Tensor, im: Tensor, time: int) -> Tensor:
        ctx.time = time
        kernel: Tensor = torch.fft.irfft(torch.complex(re, im), n=time)
        return kernel

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        spectrum = torch.fft.rfft(grad) / ctx.time
        twice = spectrum[:, 1 : (ctx.time + 1) // 2]
        twice *= 2
        return spectrum.real.clone(), spectrum.imag.clone(), None


def _spectrum(x: Tensor) -> Tensor:
    """Transform along time, the last axis but one, padded so far that nothing wraps around."""
    spectrum: Tensor = torch.fft.rfft(x, n=_size(x.shape[-2]), dim=-2)
    return spectrum


def _back(spectrum: Tensor, time: int) -> Tensor:
    x: Tensor = torch.fft.irfft(spectrum, n=_size(time), dim=-2)[..., :time, :]
    return x


def _size(time: int) -> int:
    return 1 << (2 * time - 1).bit_length()
