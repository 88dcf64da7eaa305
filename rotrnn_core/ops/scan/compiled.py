"""How does the scan run in compiled loops on a CPU, every state returned?

One copy of the input, scanned where it lies; the gradient is the same scan against the direction.
"""

from typing import Any

import torch
from torch import Tensor

from rotrnn_core.notation import Decay, Drive, Phase, State, States
from rotrnn_core.ops.scan.eigenvalues import correlated, eigenvalue_gradients, split_eigenvalues, turned
from rotrnn_core.ops.scan.operators import check_filled, operator, refuse_second_gradient


def scan_compiled(
    drive: Drive, decay: Decay, phase: Phase, h0: State | None = None, *, reverse: bool = False
) -> States:
    """Run the rotational recurrence in compiled loops; the promise is `scan_sequential`'s, first gradients included.

    Args:
        drive: float32 or float64, on the CPU; the rest as in `scan_sequential`.

    Raises:
        ValueError: The batch or the time is empty.
    """
    check_filled(*drive.shape[:2])
    states: Tensor = _Scan.apply(drive, decay, phase, h0, reverse)  # type: ignore[no-untyped-call]
    return states


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, drive: Tensor, decay: Tensor, phase: Tensor, h0: Tensor | None, reverse: bool) -> Tensor:
        states: Tensor = torch.ops.rotbench.scan(drive, decay, phase, h0, reverse)
        ctx.save_for_backward(states, decay, phase, h0)
        ctx.reverse = reverse
        return states

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_gradient()
        states, decay, phase, h0 = ctx.saved_tensors
        *found, h0_grad = torch.ops.rotbench.scan_backward(grad, states, decay, phase, h0, ctx.reverse)
        return (*found, None if h0 is None else h0_grad, None)


def _empty_states(drive: Tensor, *_: Any) -> Tensor:
    return drive.new_empty(drive.shape)


@operator("scan(Tensor drive, Tensor decay, Tensor phase, Tensor? h0, bool reverse) -> Tensor", _empty_states)
def _scan(drive: Tensor, decay: Tensor, phase: Tensor, h0: Tensor | None, reverse: bool) -> Tensor:
    from rotrnn_core.ops.scan.in_place import Piece, scan_in_place

    states = drive.clone(memory_format=torch.contiguous_format)
    batch, time, d_state = states.shape
    before = states.new_zeros(batch, d_state) if h0 is None else h0.to(states.dtype).contiguous()
    piece = Piece(split_eigenvalues(decay, phase, states.dtype), 0, time, reverse=reverse)
    scan_in_place(states, piece, before, torch.empty_like(before))
    return states


def _empty_gradients(
    grad: Tensor, states: Tensor, decay: Tensor, phase: Tensor, h0: Tensor | None, _: bool
) -> tuple[Tensor, ...]:
    carried = states.new_empty(0) if h0 is None else torch.empty_like(h0)
    return states.new_empty(states.shape), torch.empty_like(decay), torch.empty_like(phase), carried


@operator(
    "scan_backward(Tensor grad, Tensor states, Tensor decay, Tensor phase, Tensor? h0, bool reverse)"
    " -> (Tensor, Tensor, Tensor, Tensor)",
    _empty_gradients,
)
def _scan_backward(
    grad: Tensor, states: Tensor, decay: Tensor, phase: Tensor, h0: Tensor | None, reverse: bool
) -> tuple[Tensor, ...]:
    from rotrnn_core.ops.scan.in_place import Piece, adjoint_in_place

    batch, time, d_state = states.shape
    adjoint = grad.to(states.dtype).clone(memory_format=torch.contiguous_format)
    before, first, partial = states.new_zeros(3, batch, d_state)
    sums = states.new_zeros(batch, d_state, dtype=torch.float64)
    piece = Piece(split_eigenvalues(decay, phase, states.dtype), 0, time, reverse=reverse)
    adjoint_in_place(adjoint, states.contiguous(), piece, before, first, partial, sums)
    total = sums.sum(0)
    h0_grad = states.new_empty(0)
    if h0 is not None:
        total = total + correlated(first, h0)
        h0_grad = turned(first, decay, phase, back=True).to(h0.dtype)
    return adjoint, *eigenvalue_gradients(total, decay, phase), h0_grad
