"""How do loops over bytes run at speed? As machine code, kept on disk where that is possible."""

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """The function as machine code, made at its first call; without a folder to keep it in, in each process anew."""
    try:
        return cast(Function, njit(cache=True)(function))
    except RuntimeError:
        return cast(Function, njit(function))
