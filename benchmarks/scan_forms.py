"""Which ways of running a layer are compared? Ours, and those written from the formula in plain torch.

Each takes the same layer, u -> drive u -> scan -> read h + skip * u, and gives y of the same shape.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from rotrnn_core.ops.scan import scan_blocked, scan_compiled, scan_projected, scan_sequential


@dataclass(frozen=True)
class Size:
    """The shape of a layer and its input."""

    batch: int
    time: int
    d_model: int
    pairs: int

    @property
    def forward_flops(self) -> int:
        """Of the two projections; a backward pass takes twice as many."""
        return 8 * self.batch * self.time * self.d_model * self.pairs

    @property
    def forward_bytes(self) -> int:
        """Reading u and writing y; a backward pass reads u and its gradient and writes one more."""
        return 2 * 4 * self.batch * self.time * self.d_model


SIZES = {
    "S": Size(16, 1024, 64, 64),
    "M": Size(32, 1024, 128, 128),
    "L": Size(4, 16_384, 128, 128),
    "XL": Size(32, 2048, 256, 256),
}


@dataclass(frozen=True)
class Layer:
    """Parameters and input of one layer, and the gradient that arrives at its output."""

    u: Tensor
    drive: Tensor
    read: Tensor
    skip: Tensor
    decay: Tensor
    phase: Tensor
    arriving: Tensor

    def inputs(self) -> list[Tensor]:
        """Everything that has a gradient."""
        return [self.u, self.drive, self.read, self.skip, self.decay, self.phase]


def layer_of(size: Size, dtype: torch.dtype = torch.float32, *, slowest: float = 0.999) -> Layer:
    """Normal input and parameters whose outputs are of size 1; decays between .9 and `slowest`."""
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int, scale: float = 1.0) -> Tensor:
        return (scale * torch.randn(shape, generator=generator)).to(dtype)

    spread = torch.rand(2, size.pairs, generator=generator, dtype=torch.float64)
    decay = 0.9 + (slowest - 0.9) * spread[0]
    kept = torch.sqrt(1 - decay**2).repeat(2).unsqueeze(-1).to(dtype)
    layer = Layer(
        u=normal(size.batch, size.time, size.d_model),
        drive=kept * normal(2 * size.pairs, size.d_model, scale=1 / math.sqrt(size.d_model)),
        read=normal(size.d_model, 2 * size.pairs, scale=1 / math.sqrt(size.pairs)),
        skip=normal(size.d_model),
        decay=decay,
        phase=6.28 * spread[1],
        arriving=normal(size.batch, size.time, size.d_model),
    )
    for tensor in layer.inputs():
        tensor.requires_grad_()
    return layer


Form = Callable[[Layer], Tensor]


def fused(layer: Layer) -> Tensor:
    """Compiled loops and projections piece by piece; no states kept."""
    return scan_projected(layer.u, layer.drive, layer.read.unsqueeze(0), layer.skip, layer.decay, layer.phase)[0]


def _apart(scan: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Form:
    def run(layer: Layer) -> Tensor:
        states = scan(functional.linear(layer.u, layer.drive), layer.decay, layer.phase)
        return functional.linear(states, layer.read) + layer.u * layer.skip

    return run


def _fourier(drive: Tensor, decay: Tensor, phase: Tensor) -> Tensor:
    """The scan as a convolution with the powers of the eigenvalues, by the Fourier transform."""
    time = drive.shape[1]
    exponents = torch.arange(time, dtype=torch.float64).unsqueeze(-1)
    modulus, angle = decay**exponents, phase * exponents
    kernel = torch.complex(modulus * torch.cos(angle), modulus * torch.sin(angle)).to(torch.complex64)
    if drive.dtype == torch.float64:
        kernel = torch.complex(modulus * torch.cos(angle), modulus * torch.sin(angle))
    z = torch.complex(*(part.contiguous() for part in drive.chunk(2, dim=-1)))
    spectrum = torch.fft.fft(z, n=2 * time, dim=1) * torch.fft.fft(kernel, n=2 * time, dim=0)
    found = torch.fft.ifft(spectrum, dim=1)[:, :time]
    return torch.cat([found.real, found.imag], dim=-1)


FORMS: dict[str, Form] = {
    "fused": fused,
    "states_kept": _apart(scan_compiled),
    "plain_torch": _apart(scan_blocked),
    "fft": _apart(_fourier),
    "loop": _apart(scan_sequential),
}
"""`loop` is the definition under autograd, measured at S alone: it takes a hundred times as long."""
SMALL_ONLY = frozenset({"loop", "lru_pytorch"})


def gradients(form: Form, layer: Layer) -> list[Tensor]:
    """The output and every gradient."""
    y = form(layer)
    return [y.detach(), *torch.autograd.grad(y, layer.inputs(), layer.arriving)]


def worst_error(found: list[Tensor], exact: list[Tensor]) -> float:
    """The largest relative error, in the norm of each tensor."""
    return max(float((a.double() - b).norm() / b.norm()) for a, b in zip(found, exact, strict=True))
