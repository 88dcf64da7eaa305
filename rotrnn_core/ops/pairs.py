"""In which order do the pairs of a state lie? From heads order to scan order and back."""

from torch import Tensor


def to_scan_order(x: Tensor, dim: int = -1) -> Tensor:
    """From (.., pair, component) to [re | im] along one axis of even size."""
    axis = dim % x.ndim
    pairs = x.reshape(*x.shape[:axis], -1, 2, *x.shape[axis + 1 :])
    return pairs.transpose(axis, axis + 1).reshape(x.shape)


def to_heads_order(x: Tensor, dim: int = -1) -> Tensor:
    """From [re | im] to (.., pair, component) along one axis of even size; undoes `to_scan_order`."""
    axis = dim % x.ndim
    halves = x.reshape(*x.shape[:axis], 2, -1, *x.shape[axis + 1 :])
    return halves.transpose(axis, axis + 1).reshape(x.shape)
