"""How does a cell run on a sequence that has no end? Piece by piece or step by step, in constant memory.

Any cut of a sequence into pieces gives what the whole gives, gradients through the carried state included.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from rotrnn_core.config import Backend
from rotrnn_core.layers.eigenform import Eigenform, outputs
from rotrnn_core.notation import Input, Inputs, Lengths, State
from rotrnn_core.ops.scan.eigenvalues import split_eigenvalues


class Stream:
    """A cell of one direction with its parameters as they are at this moment; each call takes and gives a state.

    A state is (batch, d_state) in scan order, in the eigenbasis of the recurrence; None stands before the beginning.
    For chunked training make one stream per optimiser step, and detach the state where the gradient shall end.

    Args:
        form: The recurrence, one direction.
        skip: D, (d_model,).
        backend: How pieces are scanned.
    """

    def __init__(self, form: Eigenform, skip: Float[Tensor, " d_model"], *, backend: Backend = "auto") -> None:
        self._form = form
        self._skip = skip
        self._backend = backend
        re, re_rest, im, im_rest = split_eigenvalues(form.decay, form.phase, form.drive.dtype)
        self._same = torch.stack([torch.cat([part, part]) for part in (re, re_rest)])
        self._crossed = torch.stack([torch.cat([-part, part]) for part in (im, im_rest)])

    def piece(self, u: Inputs, z: State | None = None, lengths: Lengths | None = None) -> tuple[Inputs, State]:
        """Outputs of the next steps, (batch, time, d_model), and the state after the last valid one."""
        return outputs(self._form, self._skip, u, lengths, z, backend=self._backend)

    def step(self, u_t: Input, z: State | None = None) -> tuple[Input, State]:
        """Output of the next step, (batch, d_model), and the state after it."""
        drive = functional.linear(u_t, self._form.drive).to(self._form.drive.dtype)
        if z is not None:
            other = z.roll(z.shape[-1] // 2, -1)
            now = drive.addcmul(z, self._same[1]).addcmul_(other, self._crossed[1])
            now = now.addcmul_(z, self._same[0]).addcmul_(other, self._crossed[0])
        else:
            now = drive if self._form.first_gain is None else drive * self._form.first_gain
        return torch.addcmul(functional.linear(now, self._form.read[0]), u_t, self._skip), now
