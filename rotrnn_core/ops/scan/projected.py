"""How does a cell run from its input to its output in one operator? Projections and scan, piece by piece.

A piece of time is projected, scanned where it lies and read out while it is in the cache. What the gradient needs of
the states is kept where all of them are small; elsewhere only those between pieces are, and each piece is computed
again from the one before it. Both directions add to one output.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from rotrnn_core.notation import Decay, Inputs, Lengths, Phase, State
from rotrnn_core.ops.scan.operators import check_filled, operator, refuse_second_gradient
from rotrnn_core.ops.scan.pieces import pieces_of

_ARGUMENTS = (
    "Tensor u, Tensor drive, Tensor read, Tensor skip, Tensor decay, Tensor phase, Tensor? gain, Tensor? h0, "
    "Tensor? lengths"
)
_KEPT_BYTES = 2**25


def scan_projected(
    u: Inputs,
    drive: Float[Tensor, "d_state d_model"],
    read: Float[Tensor, "directions d_model d_state"],
    skip: Float[Tensor, " d_model"],
    decay: Decay,
    phase: Phase,
    *,
    gain: Float[Tensor, " d_state"] | None = None,
    h0: State | None = None,
    lengths: Lengths | None = None,
) -> tuple[Inputs, State]:
    """Project, scan and read out whole sequences.

        z[t] = decay R(phase) z[t-1] + drive u[t],    y[t] = sum over directions of read z[t] + skip * u[t]

    Args:
        u: Input, float32 or float64, on the CPU, (batch, time, d_model).
        drive: Input matrix in scan order, (d_state, d_model).
        read: Output matrix of each direction, the second of which runs backwards, (directions, d_model, d_state).
        skip: Factor on the input itself, (d_model,).
        decay: Modulus of each pair's eigenvalue, best in float64, (d_state / 2,).
        phase: Angle of each pair's eigenvalue, best in float64, (d_state / 2,).
        gain: Factor on the drive of each sequence's first step, in each direction, (d_state,); one when absent.
        h0: State before the first step, for one direction alone, (batch, d_state); zero when absent.
        lengths: Valid steps of each sequence, at least 1, (batch,); all of them when absent. What lies after is not
            read.

    Returns:
        Output, zero in the padding, (batch, time, d_model), and the state after each sequence's last step in the
        first direction, (batch, d_state).

    Raises:
        ValueError: The batch or the time is empty, or a state is given to two directions.
    """
    check_filled(*u.shape[:2])
    if h0 is not None and len(read) > 1:
        raise ValueError(f"h0 is given with {len(read)} directions: a state can be carried in one direction alone")
    if lengths is not None:
        lengths = lengths.to(device=u.device, dtype=torch.int64)
    given = (u, drive, read, skip, decay, phase, gain, h0)
    numbers = len(read) * u.shape[0] * u.shape[1] * len(drive)
    keep = numbers * u.dtype.itemsize <= _KEPT_BYTES and torch.is_grad_enabled()
    keep = keep and any(x is not None and x.requires_grad for x in given)
    y: Tensor
    last: Tensor
    y, last = _Projected.apply(  # type: ignore[no-untyped-call]
        *given, lengths, keep
    )
    return y, last


class _Projected(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Any) -> tuple[Tensor, Tensor]:
        y, last, between, every = torch.ops.rotbench.scan_projected(*given)
        ctx.save_for_backward(*given[:-1], between, every)
        ctx.set_materialize_grads(False)
        return y, last

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, arriving: Tensor | None) -> tuple[Tensor | None, ...]:
        refuse_second_gradient()
        *given, between, every = ctx.saved_tensors
        if grad is None:
            grad = torch.zeros_like(given[0])
        *found, gain, h0 = torch.ops.rotbench.scan_projected_backward(grad, arriving, between, every, *given)
        return (*found, None if given[6] is None else gain, None if given[7] is None else h0, None, None)


def _empty_outputs(u: Tensor, drive: Tensor, read: Tensor, *others: Any) -> tuple[Tensor, ...]:
    batch, time, _d_model = u.shape
    d_state = len(drive)
    count = pieces_of(batch, time, d_state, u.dtype).number
    every = u.new_empty(len(read) if others[-1] else 0, batch * time * d_state)
    return u.new_empty(u.shape), u.new_empty(batch, d_state), u.new_empty(len(read), count + 1, batch, d_state), every


@operator(f"scan_projected({_ARGUMENTS}, bool keep) -> (Tensor, Tensor, Tensor, Tensor)", _empty_outputs)
def _scan_projected(*given: Any) -> tuple[Tensor, ...]:
    from rotrnn_core.ops.scan.projecting import run_forward

    with torch.autocast("cpu", enabled=False):
        return run_forward(*given)


def _empty_gradients(
    _grad: Tensor, _arriving: Tensor | None, _between: Tensor, _every: Tensor, *given: Any
) -> tuple[Tensor, ...]:
    u, *parameters = given[:-1]
    return u.new_empty(u.shape), *(u.new_empty(0) if p is None else p.new_empty(p.shape) for p in parameters)


@operator(
    f"scan_projected_backward(Tensor grad, Tensor? arriving, Tensor between, Tensor every, {_ARGUMENTS})"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    _empty_gradients,
)
def _scan_projected_backward(*given: Any) -> tuple[Tensor, ...]:
    from rotrnn_core.ops.scan.projecting import run_backward

    with torch.autocast("cpu", enabled=False):
        return run_backward(*given)
