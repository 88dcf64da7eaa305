"""How do loops over bytes run at speed? As machine code, made at the first call; importing this imports numba."""

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

from rotrnn_core.machine_code import kept

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """The function as machine code."""
    return cast(Function, kept(njit, function))
