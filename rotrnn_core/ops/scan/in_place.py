"""How is a piece of a sequence scanned where it lies? Tensors in, addresses to the compiled kernels.

Importing this file imports numba.
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from rotrnn_core.notation import Lengths, State, States
from rotrnn_core.ops.scan.threads import run

_FEW_ROWS = 8
_FEWEST_PAIRS = 32


@dataclass(frozen=True)
class Piece:
    """What is the same for the scan and its adjoint on one piece.

    Args:
        factors: From `split_eigenvalues`, contiguous, (4, d_state / 2).
        offset: Place in the sequence of the piece's first step.
        time: Length of the whole sequence, where no `lengths` say otherwise.
        lengths: Valid steps of each row, int64, contiguous, on the CPU.
        reverse: The recurrence runs from the last step to the first.
        gain: Factor on the drive of each row's first step, contiguous, (d_state,).
    """

    factors: Float[Tensor, "4 pairs"]
    offset: int
    time: int
    lengths: Lengths | None = None
    reverse: bool = False
    gain: Float[Tensor, " d_state"] | None = None


def scan_in_place(states: States, piece: Piece, before: State, after: State) -> None:
    """Drives become states; `before` is the state met first, `after` receives the one left. All but batch contiguous.

    Steps in the padding become zero, and the state passes them unchanged.
    """
    run("scan", states.dtype, _fields(states, piece, before, after))


def adjoint_in_place(
    gradients: States,
    states: States,
    piece: Piece,
    before: State,
    after: State,
    partial: State,
    sums: State,
    arriving: State | None = None,
) -> None:
    """Gradients of states become gradients of drives.

    Args:
        gradients: Overwritten, (rows, steps, d_state).
        states: What the scan gave on this piece, (rows, steps, d_state).
        piece: As it was for the scan.
        before: The adjoint of the step after the piece, in the scan's direction; zero at the scan's last step.
        after: Receives the adjoint of the piece's first step, of the state itself.
        partial: Room to work in, (rows, d_state).
        sums: float64, added to: products of each adjoint with the state before it, equal and crossed.
        arriving: Gradient that reaches the state left after the scan's last step, (rows, d_state).
    """
    extra = {
        "kept": states.data_ptr(),
        "kept_row": states.stride(0),
        "kept_step": states.stride(1),
        "arriving": 0 if arriving is None else arriving.data_ptr(),
        "partial": partial.data_ptr(),
        "sums": sums.data_ptr(),
    }
    run("adjoint", gradients.dtype, _fields(gradients, piece, before, after) | extra)


def _fields(states: States, piece: Piece, before: State, after: State) -> dict[str, int]:
    rows, steps, d_state = states.shape
    pairs = d_state // 2
    blocks = max(1, min(pairs // _FEWEST_PAIRS, _FEW_ROWS // rows))
    return {
        "tiles": rows * blocks,
        "blocks": blocks,
        "width": -(-pairs // blocks),
        "pairs": pairs,
        "steps": steps,
        "offset": piece.offset,
        "time": piece.time,
        "lengths": 0 if piece.lengths is None else piece.lengths.data_ptr(),
        "reverse": int(piece.reverse),
        "factors": piece.factors.data_ptr(),
        "states": states.data_ptr(),
        "states_row": states.stride(0),
        "states_step": states.stride(1),
        "carry_in": before.data_ptr(),
        "carry_out": after.data_ptr(),
        "gain": 0 if piece.gain is None else piece.gain.data_ptr(),
    }
