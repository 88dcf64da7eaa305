"""What is a cell? What network, probe and optimiser ask of it, and what all diagonal recurrences share.

A diagonal cell says what its parameters mean by `eigenform`; scanning, padding, directions and read-out stand here.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from rotrnn_core.config import Backend
from rotrnn_core.layers.eigenform import Eigenform, outputs, padding_of, states_by_direction, without
from rotrnn_core.layers.stream import Stream
from rotrnn_core.notation import CellState, CellStates, Input, Inputs, Lengths, State, States
from rotrnn_core.ops.pairs import to_heads_order, to_scan_order
from rotrnn_core.ops.scan import backend_for, warm_kernels


class Cell(nn.Module):
    """A layer that mixes along time: the base of every cell.

    Args:
        d_model: Width of input and output.
        d_state: Real numbers in the state of one direction.
        n_heads: Parts of the state whose norms are traced one by one; None where no trace is defined.
        bidirectional: Read the sequence backwards in time as well.

    Its attribute `backend` says how a scan runs, where the cell has one; "auto" until it is set.

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
        self.backend: Backend = "auto"

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

    def _check(self, u: Inputs, lengths: Lengths | None) -> None:
        self._check_width(u, time_axis=True)
        if lengths is not None and lengths.shape != u.shape[:1]:
            raise ValueError(f"lengths has shape {tuple(lengths.shape)}: use one length for each of {u.shape[0]} rows")

    def _padding(self, u: Inputs, lengths: Lengths | None) -> Tensor | None:
        """True in the padding, (batch, time, 1); None where nothing is padded."""
        self._check(u, lengths)
        return padding_of(u, lengths)

    def _check_width(self, u: Tensor, *, time_axis: bool) -> None:
        wanted = "(batch, time >= 1, d_model)" if time_axis else "(batch, d_model)"
        axes = 3 if time_axis else 2
        if u.ndim != axes or u.shape[-1] != self.d_model or (time_axis and u.shape[1] < 1):
            raise ValueError(f"the input has shape {tuple(u.shape)}: use {wanted} with d_model = {self.d_model}")


def use_backend(network: nn.Module, wanted: Backend, device: torch.device) -> Backend:
    """Have every cell of a network scan as asked for, with kernels ready; the backend that this means on the device.

    Raises:
        ConfigError: It cannot run there.
    """
    backend = backend_for(wanted, device.type)
    warm_kernels(backend)
    for module in network.modules():
        if isinstance(module, Cell):
            module.backend = backend
    return backend


class DiagonalCell(Cell):
    """A linear recurrence whose transition is diagonal in pairs; each head holds whole pairs."""

    n_heads: int
    D: nn.Parameter

    def eigenform(self) -> Eigenform:
        """The cell in its eigenbasis, from the parameters as they are now."""
        raise NotImplementedError

    def forward(self, u: Inputs, lengths: Lengths | None = None) -> Inputs:
        self._check(u, lengths)
        y, _ = outputs(self._eigenform_in_full_precision(u), self.D, u, lengths, backend=self.backend)
        return y

    def states(self, u: Inputs, lengths: Lengths | None = None) -> CellStates:
        padding = self._padding(u, lengths)
        u = without(u, padding)
        form = self._eigenform_in_full_precision(u)
        scanned = states_by_direction(form, u, lengths, backend=self.backend)
        found = [self._leave_eigenbasis(form, z) for z in scanned]
        return without(torch.stack(found, dim=-2).flatten(-3), padding)

    def step(self, u_t: Input, h: CellState | None = None) -> tuple[Input, CellState]:
        self._check_width(u_t, time_axis=False)
        stream, form = self._streaming(u_t)
        y, z = stream.step(u_t, None if h is None else self._enter_eigenbasis(form, h))
        return y, self._leave_eigenbasis(form, z.unsqueeze(1)).reshape(-1, self.d_state)

    def stream(self) -> Stream:
        """The cell as it is now, for pieces of a sequence with a carried state; see `Stream`.

        Raises:
            ValueError: The cell is bidirectional: its output depends on inputs still to come.
        """
        return self._streaming(self.D)[0]

    def _streaming(self, u: Tensor) -> tuple[Stream, Eigenform]:
        if self.directions == 2:
            raise ValueError("bidirectional is True: a cell that reads backwards in time cannot run step by step")
        form = self._eigenform_in_full_precision(u)
        return Stream(form, self.D, backend=self.backend), form

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
