"""How is complex arithmetic done on real tensors? On pairs (re, im): no complex dtype is trained or compiled."""

from dataclasses import dataclass
from typing import Union

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Complex:
    """Complex numbers as two real tensors of one shape; a plain number or tensor counts as real."""

    re: Float[Tensor, "*shape"]
    im: Float[Tensor, "*shape"]

    def __add__(self, other: "Complex") -> "Complex":
        return Complex(self.re + other.re, self.im + other.im)

    def __sub__(self, other: "Complex") -> "Complex":
        return Complex(self.re - other.re, self.im - other.im)

    def __mul__(self, other: Union["Complex", Tensor, float]) -> "Complex":
        if isinstance(other, Complex):
            return Complex(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)
        return Complex(self.re * other, self.im * other)

    def conj(self) -> "Complex":
        """The complex conjugate."""
        return Complex(self.re, -self.im)

    def squared_modulus(self) -> Tensor:
        """re^2 + im^2."""
        return self.re.square() + self.im.square()

    def reciprocal(self) -> "Complex":
        """1 / z."""
        return self.conj() * (1 / self.squared_modulus())

    def to(self, dtype: torch.dtype) -> "Complex":
        """Both parts in another real dtype."""
        return Complex(self.re.to(dtype), self.im.to(dtype))

    def unsqueeze(self, dim: int) -> "Complex":
        """Both parts with a new axis."""
        return Complex(self.re.unsqueeze(dim), self.im.unsqueeze(dim))

    def side_by_side(self) -> Tensor:
        """[re | im] along the last axis."""
        return torch.cat([self.re, self.im], dim=-1)


def from_side_by_side(x: Tensor) -> Complex:
    """Undo `Complex.side_by_side`."""
    re, im = x.chunk(2, dim=-1)
    return Complex(re, im)
