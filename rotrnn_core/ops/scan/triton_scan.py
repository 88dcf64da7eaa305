"""How does a GPU run the scan? One pass over memory where there is enough to do, else in chunks of time side by side.

The gradient is the same scan backwards in time with the conjugate eigenvalues; the gradient of an eigenvalue is summed
in the same pass. Importing this file needs triton; nothing is compiled before the first call.
"""

from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from rotrnn_core.notation import Decay, Drive, Phase, State, States
from rotrnn_core.ops.scan.triton_kernels import LANES, ends_kernel, scan_kernel

DTYPES = (torch.float32, torch.bfloat16)
LEVELS = 5
"""A program holds 2^LEVELS steps of one stream in registers: 8 KiB in float32 on their way from memory."""
REGISTERS = 160
"""Registers of a thread: what the deepest tiles need; left to itself, the compiler spills some to run more programs."""


def scan_triton(
    drive: Drive,
    decay: Decay,
    phase: Phase,
    h0: State | None = None,
    *,
    reverse: bool = False,
    chunks: int | None = None,
) -> States:
    """Run the rotational recurrence on a GPU; the promise is `scan_sequential`'s, first gradients included.

    The state is carried in float32, whatever drive's dtype; the same call gives the same bits.

    Args:
        drive: Driving input, float32 or bfloat16, (batch, time, d_state).
        decay: Length kept per step, best in float64, (d_state / 2,).
        phase: Angle per step, radians, best in float64, (d_state / 2,).
        h0: State before the first step, (batch, d_state); zero when absent.
        reverse: Run from the last step to the first.
        chunks: Parts of time that run side by side; as many as keep the device busy when absent.

    Raises:
        ValueError: An empty batch or sequence, a dtype or a device that the kernels do not serve.
    """
    if drive.numel() == 0:
        raise ValueError(f"drive has shape {tuple(drive.shape)}: use at least one sequence of at least one step")
    if drive.dtype not in DTYPES:
        raise ValueError(f"drive is {drive.dtype}: the triton scan takes float32 or bfloat16")
    if not (drive.is_cuda or triton.knobs.runtime.interpret):
        raise ValueError(f"drive lies on {drive.device}: the triton scan runs on CUDA devices")
    states: Tensor = _TritonScan.apply(drive, decay, phase, h0, reverse, chunks)  # type: ignore[no-untyped-call]
    return states


class _TritonScan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, drive: Tensor, decay: Tensor, phase: Tensor, h0: Tensor | None, reverse: bool, chunks: int | None
    ) -> Tensor:
        states, _ = _run(drive.contiguous(), decay, phase, h0, reverse=reverse, chunks=chunks)
        ctx.save_for_backward(states, decay, phase, h0)
        ctx.reverse, ctx.chunks = reverse, chunks
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        states, decay, phase, h0 = ctx.saved_tensors
        wanted = ctx.needs_input_grad[1] or ctx.needs_input_grad[2]
        adjoint, correlations = _run(
            grad.contiguous(),
            decay,
            -phase,
            None,
            reverse=not ctx.reverse,
            chunks=ctx.chunks,
            earlier=states if wanted else None,
        )
        decay_grad = phase_grad = h0_grad = None
        re, im = adjoint[:, -1 if ctx.reverse else 0].double().chunk(2, dim=-1)
        cos, sin = torch.cos(phase.double()), torch.sin(phase.double())
        if correlations is not None:
            along, across = correlations.sum((0, 1)).chunk(2)
            if h0 is not None:
                h_re, h_im = h0.double().chunk(2, dim=-1)
                along = along + (re * h_re + im * h_im).sum(0)
                across = across + (im * h_re - re * h_im).sum(0)
            decay_grad = (cos * along + sin * across).to(decay.dtype)
            phase_grad = (decay * (cos * across - sin * along)).to(phase.dtype)
        if ctx.needs_input_grad[3]:
            back = torch.cat([cos * re + sin * im, cos * im - sin * re], dim=-1) * decay.double().repeat(2)
            h0_grad = back.to(h0.dtype)
        return adjoint, decay_grad, phase_grad, h0_grad, None, None


@dataclass(frozen=True)
class _Plan:
    """How time is cut: steps of a tile as a power of two, chunks that run side by side, and their length in steps."""

    levels: int
    chunks: int
    length: int


def _plan(rows: int, time: int, processors: int, *, streams: int, chunks: int | None) -> _Plan:
    """Chunks where `rows` programs leave processors with less than a warp and a half each.

    One pass over memory in deep tiles then has less on its way than the memory can carry.
    """
    levels = LEVELS - (streams - 1)
    if chunks is None:
        wanted = triton.cdiv(4 * processors, rows) if 2 * rows < 3 * processors else 1
        chunks = max(1, min(wanted, 64, time >> (levels + 2)))
    length = triton.cdiv(triton.cdiv(time, chunks), 2**levels) << levels
    return _Plan(levels, triton.cdiv(time, length), length)


def _processors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


def _run(
    drive: Tensor,
    decay: Tensor,
    phase: Tensor,
    h0: Tensor | None,
    *,
    reverse: bool,
    chunks: int | None,
    earlier: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """States of a contiguous drive and, where `earlier` is given, their correlations with it, per row and chunk."""
    batch, time, d_state = drive.shape
    streams = 1 if earlier is None else 2
    rows = batch * triton.cdiv(d_state // 2, LANES.value)
    plan = _plan(rows, time, _processors(drive.device), streams=streams, chunks=chunks)
    eigenvalues = _in_two_floats(_power(decay, phase, 1))
    states = torch.empty_like(drive)
    ends = drive.new_empty(batch, plan.chunks - 1, d_state, dtype=torch.float32)
    correlations = None if earlier is None else ends.new_empty(batch, plan.chunks, d_state, dtype=torch.float64)
    cut = {"WIDTH": d_state, "REVERSE": reverse, "LEVELS": plan.levels, "num_warps": 1, "maxnreg": REGISTERS}
    if plan.chunks > 1:
        ends_kernel[rows, plan.chunks - 1](drive, ends, eigenvalues, time, plan.length, **cut)
    scan_kernel[rows, plan.chunks](
        drive,
        states,
        drive if earlier is None else earlier,
        drive if h0 is None else h0.contiguous(),
        ends,
        eigenvalues,
        _power(decay, phase, plan.length),
        eigenvalues if correlations is None else correlations,
        time,
        plan.length,
        STARTED=h0 is not None,
        CORRELATED=correlations is not None,
        **cut,
    )
    return states, correlations


def _power(decay: Tensor, phase: Tensor, exponent: int) -> Tensor:
    """Real and imaginary parts of a power of the eigenvalues, float64, (2, pairs)."""
    modulus, angle = decay.double() ** exponent, phase.double() * exponent
    return torch.stack([modulus * torch.cos(angle), modulus * torch.sin(angle)])


def _in_two_floats(value: Tensor) -> Tensor:
    """A float64 tensor as two of float32 that sum to it, one after the other along the first axis."""
    high = value.float()
    return torch.cat([high, (value - high).float()])
