"""How does a cell run in the eigenbasis of its recurrence? From u to y, or to every state, as the backend can.

Where a fused form runs, projections and scan are one operator that keeps no states; elsewhere each is its own.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from rotrnn_core.config import Backend
from rotrnn_core.notation import Decay, Drive, Inputs, Lengths, Phase, State, States
from rotrnn_core.ops.scan import backend_for, scan, scan_projected


@dataclass(frozen=True)
class Eigenform:
    """A cell in the eigenbasis of its recurrence, computed from the parameters once per call.

        z[t] = decay R(phase) z[t-1] + drive u[t],    y[t] = sum over directions of read z[t] + D u[t]

    Args:
        drive: Input matrix with its normaliser, scan order, (d_state, d_model).
        read: Output matrix of each direction, scan order, (directions, d_model, d_state).
        decay: Modulus of each pair's eigenvalue, float64, (d_state / 2,).
        phase: Angle of each pair's eigenvalue, radians, float64, (d_state / 2,).
        first_gain: Extra factor on the drive of a sequence's first step, scan order, (d_state,); none when absent.
        basis: Columns that turn z into the state h = basis z, (n_heads, d_head, d_head); h = z when absent.
    """

    drive: Float[Tensor, "d_state d_model"]
    read: Float[Tensor, "directions d_model d_state"]
    decay: Decay
    phase: Phase
    first_gain: Float[Tensor, " d_state"] | None = None
    basis: Float[Tensor, "n_heads d_head d_head"] | None = None


def outputs(
    form: Eigenform,
    skip: Float[Tensor, " d_model"],
    u: Inputs,
    lengths: Lengths | None = None,
    before: State | None = None,
    *,
    backend: Backend = "auto",
) -> tuple[Inputs, State]:
    """Outputs, zero in the padding, and the state of the first direction after each sequence's last step.

    Args:
        form: The recurrence.
        skip: D.
        u: Input, (batch, time, d_model).
        lengths: Valid steps of each sequence, (batch,); all of them when absent.
        before: State before the first step, of one direction, (batch, d_state); a sequence begins when absent.
        backend: How the scan runs.
    """
    if _runs_fused(form, u, backend):
        gain = form.first_gain if before is None else None
        return scan_projected(
            u, form.drive, form.read, skip, form.decay, form.phase, gain=gain, h0=before, lengths=lengths
        )
    padding = padding_of(u, lengths)
    u = without(u, padding)
    found = states_by_direction(form, u, lengths, before, backend=backend)
    y = u * skip
    for z, read in zip(found, form.read, strict=True):
        y = y + functional.linear(z, read)
    rows = torch.arange(len(u), device=u.device)
    last = found[0][:, -1] if lengths is None else found[0][rows, lengths - 1]
    return without(y, padding), last


def states_by_direction(
    form: Eigenform, u: Inputs, lengths: Lengths | None, before: State | None = None, *, backend: Backend = "auto"
) -> list[States]:
    """Every state of each direction; u is zero in the padding, where states mean nothing."""
    drive = functional.linear(u, form.drive).to(form.drive.dtype)
    batch, time, _ = drive.shape
    starts = torch.zeros(batch, dtype=torch.long, device=u.device)
    forward = drive if before is not None else _first_step_scaled(drive, form.first_gain, starts)
    found = [scan(forward, form.decay, form.phase, before, backend=backend)]
    if len(form.read) == 2:
        ends = starts + (time - 1) if lengths is None else lengths - 1
        backward = _first_step_scaled(drive, form.first_gain, ends)
        found.append(scan(backward, form.decay, form.phase, reverse=True, backend=backend))
    return found


def padding_of(u: Inputs, lengths: Lengths | None) -> Tensor | None:
    """True in the padding, (batch, time, 1); None where nothing is padded."""
    if lengths is None:
        return None
    return (torch.arange(u.shape[1], device=u.device) >= lengths.unsqueeze(-1)).unsqueeze(-1)


def without(x: Tensor, padding: Tensor | None) -> Tensor:
    """x with zero in the padding."""
    return x if padding is None else x.masked_fill(padding, 0.0)


def _runs_fused(form: Eigenform, u: Inputs, backend: Backend) -> bool:
    device = u.device.type
    return (
        backend_for(backend, device) == "numba"
        and u.dtype == form.drive.dtype
        and u.dtype in (torch.float32, torch.float64)
        and not torch.is_autocast_enabled(device)
    )


def _first_step_scaled(drive: Drive, gain: Tensor | None, at: Tensor) -> Drive:
    if gain is None:
        return drive
    rows = torch.arange(len(at), device=at.device)
    return drive.index_put((rows, at), drive[rows, at] * gain)
