"""How does plain torch run the scan fast? Blocks of time side by side, then one carry per block.

Time is cut into `count` blocks of `length` steps and a rest shorter than a block. All blocks run side by side from a
zero state; one short loop carries the state from block to block; each step then receives what its block was handed.
The gradient is written out: the adjoint of the scan is the same scan, backwards in time with the conjugate factors.
Every power of the eigenvalues is taken in float64.
"""

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from rotrnn_core.notation import Decay, Drive, Phase, State, States


def scan_blocked(drive: Drive, decay: Decay, phase: Phase, h0: State | None = None, *, reverse: bool = False) -> States:
    """Run the rotational recurrence block by block; the promise is `scan_sequential`'s, first gradients included."""
    states: Tensor = _BlockedScan.apply(drive, decay, phase, h0, reverse)  # type: ignore[no-untyped-call]
    return states


class _BlockedScan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, drive: Tensor, decay: Tensor, phase: Tensor, h0: Tensor | None, reverse: bool) -> Tensor:
        powers = _powers(decay, phase, _block_length(drive.shape[1]), drive.dtype)
        states = _run(drive, powers, h0, reverse)
        ctx.save_for_backward(states, decay, phase, h0, *powers)
        ctx.reverse = reverse
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        states, decay, phase, h0, re, im = ctx.saved_tensors
        conjugate = _Powers(re, -im)
        adjoint = _run(grad, conjugate, None, not ctx.reverse)
        first = adjoint[:, -1 if ctx.reverse else 0]
        decay_grad = phase_grad = h0_grad = None
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            earlier, later = (states[:, 1:], adjoint[:, :-1]) if ctx.reverse else (states[:, :-1], adjoint[:, 1:])
            along, across = _correlate(later, earlier)
            if h0 is not None:
                along_h0, across_h0 = _correlate(first, h0)
                along, across = along + along_h0, across + across_h0
            cos, sin = torch.cos(phase), torch.sin(phase)
            decay_grad = (cos * along + sin * across).to(decay.dtype)
            phase_grad = (decay * (cos * across - sin * along)).to(phase.dtype)
        if h0 is not None and ctx.needs_input_grad[3]:
            h0_grad = torch.zeros_like(h0)
            _views(h0_grad).add_turned(_views(first), conjugate.at(1))
        return adjoint, decay_grad, phase_grad, h0_grad, None


class _Powers(NamedTuple):
    """Powers 1, 2, .. of the eigenvalues: real parts over both halves of a state, imaginary parts over one."""

    re: Tensor
    im: Tensor

    def at(self, exponent: int) -> "_Powers":
        """One power alone."""
        return _Powers(self.re[exponent - 1], self.im[exponent - 1])

    def below_last(self, *, falling: bool) -> "_Powers":
        """All powers but the highest, rising or falling."""
        rising = _Powers(self.re[:-1], self.im[:-1])
        return _Powers(rising.re.flip(0), rising.im.flip(0)) if falling else rising


def _powers(decay: Tensor, phase: Tensor, most: int, dtype: torch.dtype) -> _Powers:
    exponents = torch.arange(1, most + 1, dtype=torch.float64, device=decay.device).unsqueeze(-1)
    modulus, angle = decay.double() ** exponents, phase.double() * exponents
    re, im = modulus * torch.cos(angle), modulus * torch.sin(angle)
    return _Powers(torch.cat([re, re], dim=-1).to(dtype), im.to(dtype))


class _Views(NamedTuple):
    """States in scan order, whole and by component."""

    whole: Tensor
    re: Tensor
    im: Tensor

    def add_turned(self, states: "_Views", factor: "_Powers") -> None:
        """self += factor * states, pair by pair, in place."""
        self.whole.addcmul_(states.whole, factor.re)
        self.re.addcmul_(states.im, factor.im, value=-1)
        self.im.addcmul_(states.re, factor.im)


def _views(states: Tensor) -> _Views:
    half = states.shape[-1] // 2
    return _Views(states, states[..., :half], states[..., half:])


def _steps(states: Tensor, dim: int, *, reverse: bool) -> list[_Views]:
    """One view per step along `dim`, in the order in which the scan meets them."""
    steps = [_Views(*parts) for parts in zip(*(part.unbind(dim) for part in _views(states)), strict=True)]
    return steps[::-1] if reverse else steps


def _chain(steps: Iterable[_Views], factor: _Powers) -> None:
    """Add to each step the one before it, turned by a power of the eigenvalues."""
    for before, now in pairwise(steps):
        now.add_turned(before, factor)


def _correlate(later: Tensor, earlier: Tensor) -> tuple[Tensor, Tensor]:
    """Sums over all but the last axis of the products of equal and of crossed components of each pair, in float64."""
    half = later.shape[-1] // 2
    others = list(range(later.ndim - 1))
    equal = (later * earlier).sum(others).double()
    crossed = later[..., half:] * earlier[..., :half] - later[..., :half] * earlier[..., half:]
    return equal[:half] + equal[half:], crossed.sum(others).double()


def _block_length(time: int) -> int:
    """The length that needs the fewest loop turns: within a block, over the blocks, over the rest."""
    near = max(1, math.isqrt(time))
    return min(range(max(1, near // 2), 2 * near + 1), key=lambda length: length + time // length + time % length)


def _run(drive: Tensor, powers: _Powers, h0: Tensor | None, reverse: bool) -> Tensor:
    batch, time, d_state = drive.shape
    length = len(powers.re)
    count, rest = divmod(time, length)
    states = drive.clone(memory_format=torch.contiguous_format)
    blocks = (states[:, rest:] if reverse else states[:, : time - rest]).view(batch, count, length, d_state)
    remainder = states[:, :rest] if reverse else states[:, time - rest :]

    within = _steps(blocks, 2, reverse=reverse)
    ends = _steps(within[-1].whole, 1, reverse=reverse)
    if h0 is not None:
        _views(states[:, -1 if reverse else 0]).add_turned(_views(h0), powers.at(1))
    _chain(within, powers.at(1))
    _chain(ends, powers.at(length))
    if count > 1 and length > 1:
        handed = blocks[:, 1:, :1] if reverse else blocks[:, :-1, -1:]
        taking = blocks[:, :-1, 1:] if reverse else blocks[:, 1:, :-1]
        _views(taking).add_turned(_views(handed), powers.below_last(falling=reverse))
    _chain([ends[-1], *_steps(remainder, 1, reverse=reverse)], powers.at(1))
    return states
