"""What is a cell? What network, probe and optimiser ask of it, and what all diagonal recurrences share.

A diagonal cell says what its parameters mean by `eigenform`; scanning, padding, directions and read-out stand here.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from rotrnn_core.notation import CellState, CellStates, Decay, Drive, Input, Inputs, Lengths, Phase, State, States
from rotrnn_core.ops.pairs import to_heads_order, to_scan_order
from rotrnn_core.ops.scan import scan


class Cell(nn.Module):
    """A layer that mixes along time: the base of every cell.

    Args:
        d_model: Width of input and output.
        d_state: Real numbers in the state of one direction.
        n_heads: Parts of the state whose norms are traced one by one; None where no trace is defined.
        bidirectional: Read the sequence backwards in time as well.

    Raises:
        ValueError: A size that is not positive.
    """

    def __init__(self, d_model: int, d_state: int, n_heads: int | None, *, bidirectional: bool) -> None:
        super().__init__()
        for name, value in (("d_model", d_model), ("d_state", d_state), ("n_heads", n_heads)):
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value!r}: use a whole number of at least 1")
        self.d_model = d_model
        self.d_state = d_state
        self.n_heads = n_heads
        self.d_head = d_state // (n_heads or 1)
        self.directions = 2 if bidirectional else 1

    def forward(self, u: Inputs, lengths: Lengths | None = None) -> Inputs:
        """Run whole sequences from a zero state.

        Args:
            u: Input, (batch, time, d_model), time >= 1.
            lengths: Valid steps of each sequence, (batch,); all of them when absent. What lies after is not read.

        Returns:
            Output, (batch, time, d_model): for each sequence what it gives alone, and zero in the padding.
        """
        raise NotImplementedError

    def states(self, u: Inputs, lengths: Lengths | None = None) -> CellStates:
        """Every hidden state h of whole sequences, from a zero state.

        Args:
            u: Input, (batch, time, d_model), time >= 1.
            lengths: Valid steps of each sequence, (batch,); all of them when absent.

        Returns:
            Real states in heads order, both directions of a head side by side, zero in the padding,
            (batch, time, directions * d_state), which views as (batch, time, n_heads, directions, d_head).
        """
        raise NotImplementedError

    def step(self, u_t: Input, h: CellState | None = None) -> tuple[Input, CellState]:
        """Advance by one step, as a recurrent network in use does.

        Args:
            u_t: Input of this step, (batch, d_model).
            h: State after the step before, (batch, d_state), heads order; None at the first step.

        Returns:
            Output of this step, (batch, d_model), and the state after it, (batch, d_state).

        Raises:
            ValueError: The cell is bidirectional: its output depends on inputs still to come.
        """
        raise NotImplementedError

    def recurrence_parameters(self) -> list[nn.Parameter]:
        """What decides how the state decays and turns; trained at its own rate."""
        raise NotImplementedError

    def input_parameters(self) -> list[nn.Parameter]:
        """The input matrix: B."""
        raise NotImplementedError

    def output_parameters(self) -> list[nn.Parameter]:
        """The output matrix and the skip: C, D."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        return f"d_model={self.d_model}, d_state={self.d_state}, n_heads={self.n_heads}, directions={self.directions}"

    def _padding(self, u: Inputs, lengths: Lengths | None) -> Tensor | None:
        """True in the padding, (batch, time, 1); None where nothing is padded."""
        self._check_width(u, time_axis=True)
        if lengths is None:
            return None
        if lengths.shape != u.shape[:1]:
            raise ValueError(f"lengths has shape {tuple(lengths.shape)}: use one length for each of {u.shape[0]} rows")
        return (torch.arange(u.shape[1], device=u.device) >= lengths.unsqueeze(-1)).unsqueeze(-1)

    def _check_width(self, u: Tensor, *, time_axis: bool) -> None:
        wanted = "(batch, time >= 1, d_model)" if time_axis else "(batch, d_model)"
        axes = 3 if time_axis else 2
        if u.ndim != axes or u.shape[-1] != self.d_model or (time_axis and u.shape[1] < 1):
            raise ValueError(f"the input has shape {tuple(u.shape)}: use {wanted} with d_model = {self.d_model}")


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


class DiagonalCell(Cell):
    """A linear recurrence whose transition is diagonal in pairs; each head holds whole pairs."""

    n_heads: int
    D: nn.Parameter

    def eigenform(self) -> Eigenform:
        """The cell in its eigenbasis, from the parameters as they are now."""
        raise NotImplementedError

    def forward(self, u: Inputs, lengths: Lengths | None = None) -> Inputs:
        padding = self._padding(u, lengths)
        u = _without(u, padding)
        form = self._eigenform_in_full_precision(u)
        y = u * self.D
        for z, read in zip(self._scan(form, u, lengths), form.read, strict=True):
            y = y + functional.linear(z, read)
        return y if padding is None else y * ~padding

    def states(self, u: Inputs, lengths: Lengths | None = None) -> CellStates:
        padding = self._padding(u, lengths)
        u = _without(u, padding)
        form = self._eigenform_in_full_precision(u)
        found = [self._leave_eigenbasis(form, z) for z in self._scan(form, u, lengths)]
        return _without(torch.stack(found, dim=-2).flatten(-3), padding)

    def step(self, u_t: Input, h: CellState | None = None) -> tuple[Input, CellState]:
        if self.directions == 2:
            raise ValueError("bidirectional is True: a cell that reads backwards in time cannot run step by step")
        self._check_width(u_t, time_axis=False)
        form = self._eigenform_in_full_precision(u_t)
        drive = functional.linear(u_t, form.drive)
        if h is None:
            z = drive if form.first_gain is None else drive * form.first_gain
        else:
            z = scan(drive.unsqueeze(1), form.decay, form.phase, self._enter_eigenbasis(form, h)).squeeze(1)
        y = functional.linear(z, form.read[0]) + u_t * self.D
        return y, self._leave_eigenbasis(form, z.unsqueeze(1)).reshape(-1, self.d_state)

    def _scan(self, form: Eigenform, u: Inputs, lengths: Lengths | None) -> list[States]:
        drive = functional.linear(u, form.drive).to(form.drive.dtype)
        batch, time, _ = drive.shape
        starts = torch.zeros(batch, dtype=torch.long, device=u.device)
        found = [scan(_first_step_scaled(drive, form.first_gain, starts), form.decay, form.phase)]
        if self.directions == 2:
            ends = starts + (time - 1) if lengths is None else lengths - 1
            backward = _first_step_scaled(drive, form.first_gain, ends)
            found.append(scan(backward, form.decay, form.phase, reverse=True))
        return found

    def _leave_eigenbasis(self, form: Eigenform, z: States) -> Float[Tensor, "batch time n_heads d_head"]:
        h = to_heads_order(z).view(*z.shape[:-1], self.n_heads, self.d_head)
        return h if form.basis is None else torch.einsum("hij,bthj->bthi", form.basis, h)

    def _enter_eigenbasis(self, form: Eigenform, h: CellState) -> State:
        heads = h.reshape(-1, self.n_heads, self.d_head)
        z = heads if form.basis is None else torch.einsum("hij,bhi->bhj", form.basis, heads)
        return to_scan_order(z.flatten(-2))

    def _eigenform_in_full_precision(self, u: Tensor) -> Eigenform:
        with torch.autocast(u.device.type, enabled=False):
            return self.eigenform()


def _without(x: Tensor, padding: Tensor | None) -> Tensor:
    return x if padding is None else x.masked_fill(padding, 0.0)


def _first_step_scaled(drive: Drive, gain: Tensor | None, at: Tensor) -> Drive:
    if gain is None:
        return drive
    rows = torch.arange(len(at), device=at.device)
    return drive.index_put((rows, at), drive[rows, at] * gain)
