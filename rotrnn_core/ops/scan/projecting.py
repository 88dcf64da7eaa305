"""What does the fused form do, piece by piece? Forward, and backward from states kept or computed again.

Importing this file imports numba.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from rotrnn_core.ops.scan.eigenvalues import correlated, eigenvalue_gradients, split_eigenvalues, turned
from rotrnn_core.ops.scan.in_place import Piece, adjoint_in_place, scan_in_place
from rotrnn_core.ops.scan.pieces import Pieces, pieces_of, valid_part


def run_forward(
    u: Tensor,
    drive: Tensor,
    read: Tensor,
    skip: Tensor,
    decay: Tensor,
    phase: Tensor,
    gain: Tensor | None,
    h0: Tensor | None,
    lengths: Tensor | None,
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Outputs, the state after the last step of the first direction, the states between pieces, and all if kept.

    Those between have one entry more than there are pieces along time: before piece k in the scan's direction at k when
    it runs forwards, at k + 1 when it runs backwards.
    """
    batch, time, _ = u.shape
    d_state = len(drive)
    cut = pieces_of(batch, time, d_state, u.dtype)
    u, gain = _dense(u), None if gain is None else gain.contiguous()
    y = u.new_empty(u.shape)
    between = u.new_zeros(len(read), cut.number + 1, batch, d_state)
    last = u.new_empty(batch, d_state)
    if h0 is not None:
        between[0, 0] = h0
    every = u.new_empty(len(read) if keep else 0, batch * time * d_state)
    room = u.new_empty(0 if keep else cut.rows * min(cut.steps, time) * d_state)
    factors = split_eigenvalues(decay, phase, u.dtype)
    for rows, longest in _groups(cut, lengths):
        y[rows, longest:] = 0
        for direction, kept in enumerate(between):
            reverse = direction == 1
            place = 0
            for piece in cut.along(rows.start, longest, reverse=reverse):
                place = piece.place
                part, out = valid_part(u, piece, lengths), y[piece.rows, piece.steps]
                states = _projected(part, drive.mT, cut.part_of(every[direction], piece) if keep else room)
                start, end = (place + 1, place) if reverse else (place, place + 1)
                scan_in_place(
                    states,
                    Piece(factors, piece.steps.start, time, _rows(lengths, rows), reverse, gain),
                    kept[start, rows],
                    kept[end, rows],
                )
                if direction == 0:
                    torch.mul(part, skip, out=out)
                out.baddbmm_(states, _shared(read[direction].mT, len(part)))
            if direction == 0:
                last[rows] = kept[place + 1, rows]
    return y, last, between, every


def run_backward(
    grad: Tensor,
    arriving: Tensor | None,
    between: Tensor,
    every: Tensor,
    u: Tensor,
    drive: Tensor,
    read: Tensor,
    skip: Tensor,
    decay: Tensor,
    phase: Tensor,
    gain: Tensor | None,
    h0: Tensor | None,
    lengths: Tensor | None,
) -> tuple[Tensor, ...]:
    """Gradients of u, drive, read, skip, decay, phase, gain and h0; the last two are empty where there is none."""
    batch, time, d_model = u.shape
    d_state = len(drive)
    cut = pieces_of(batch, time, d_state, u.dtype)
    u, grad = _dense(u), _dense(grad)
    gain = None if gain is None else gain.contiguous()
    arriving = None if arriving is None else arriving.contiguous()
    u_grad = u.new_empty(u.shape)
    drive_grad = u.new_zeros(cut.rows, d_state, d_model)
    read_grad = u.new_zeros(len(read), cut.rows, d_model, d_state)
    skip_grad = u.new_zeros(d_model, dtype=torch.float64)
    sums = u.new_zeros(len(read), batch, d_state, dtype=torch.float64)
    firsts = u.new_zeros(len(read), batch, d_state)
    room, more_room = u.new_empty(2, cut.rows * min(cut.steps, time) * d_state)
    partial = u.new_empty(cut.rows, d_state)
    factors = split_eigenvalues(decay, phase, u.dtype)
    for rows, longest in _groups(cut, lengths):
        u_grad[rows, longest:] = 0
        for direction, kept in enumerate(between):
            reverse = direction == 1
            adjoint, spare = u.new_zeros(2, rows.stop - rows.start, d_state)
            for piece in cut.along(rows.start, longest, reverse=not reverse):
                part, given = valid_part(u, piece, lengths), valid_part(grad, piece, lengths)
                shape = Piece(factors, piece.steps.start, time, _rows(lengths, rows), reverse, gain)
                count, out = len(part), u_grad[piece.rows, piece.steps]
                if len(every):
                    states = cut.part_of(every[direction], piece).view(count, -1, d_state)
                else:
                    states = _projected(part, drive.mT, room)
                    scan_in_place(states, shape, kept[piece.place + reverse, rows], spare)
                moving = _projected(given, read[direction], more_room)
                read_grad[direction, :count].baddbmm_(given.mT, states)
                adjoint_in_place(
                    moving,
                    states,
                    shape,
                    adjoint,
                    spare,
                    partial[:count],
                    sums[direction, rows],
                    arriving[rows] if arriving is not None and not reverse else None,
                )
                adjoint, spare = spare, adjoint
                if direction == 0:
                    torch.mul(given, part, out=out)
                    skip_grad += out.sum((0, 1))
                    torch.mul(given, skip, out=out)
                out.baddbmm_(moving, _shared(drive, count))
                drive_grad[:count].baddbmm_(moving.mT, part)
            firsts[direction, rows] = adjoint
    total = sums.sum((0, 1))
    h0_grad = gain_grad = u.new_empty(0)
    if h0 is not None:
        total = total + correlated(firsts[0], h0)
        h0_grad = turned(firsts[0], decay, phase, back=True).to(h0.dtype)
    if gain is not None:
        ends = torch.full((batch,), time) if lengths is None else lengths
        met = torch.stack([u[:, 0], u[torch.arange(batch), ends - 1]])[: len(read)]
        gain_grad = (firsts * (met @ drive.mT)).sum((0, 1))
    return (
        u_grad,
        drive_grad.sum(0),
        read_grad.sum(1),
        skip_grad.to(skip.dtype),
        *eigenvalue_gradients(total, decay, phase),
        gain_grad,
        h0_grad,
    )


def _groups(cut: Pieces, lengths: Tensor | None) -> Iterator[tuple[slice, int]]:
    """Rows that run together, and the longest valid part among them."""
    for first in range(0, cut.batch, cut.rows):
        rows = slice(first, min(first + cut.rows, cut.batch))
        yield rows, cut.time if lengths is None else min(cut.time, max(1, int(lengths[rows].max())))


def _rows(lengths: Tensor | None, rows: slice) -> Tensor | None:
    return None if lengths is None else lengths[rows].contiguous()


def _dense(x: Tensor) -> Tensor:
    return x if x.stride(-1) == 1 else x.contiguous()


def _shared(matrix: Tensor, count: int) -> Tensor:
    return matrix.expand(count, *matrix.shape)


def _projected(part: Tensor, matrix: Tensor, room: Tensor) -> Tensor:
    """part @ matrix in the given room, (rows, steps, columns)."""
    rows, steps, _ = part.shape
    columns = matrix.shape[-1]
    found = room[: rows * steps * columns].view(rows, steps, columns)
    torch.bmm(part, _shared(matrix, rows), out=found)
    return found
