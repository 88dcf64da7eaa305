"""Which operators does torch know of? The compiled scans by name, so that torch.compile takes each as one.

An operator here has no gradient of its own: the `torch.autograd.Function` that calls it has.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import torch

F = TypeVar("F", bound=Callable[..., Any])
_LIBRARY: Any = torch.library.Library("rotbench", "DEF")  # type: ignore[no-untyped-call]


def operator(schema: str, shapes: Callable[..., Any]) -> Callable[[F], F]:
    """Register a function as the CPU's implementation of `rotbench::schema`; `shapes` makes empty results like its."""

    def register(function: F) -> F:
        _LIBRARY.define(schema)
        name = schema.partition("(")[0]
        _LIBRARY.impl(name, function, "CPU")
        torch.library.register_fake(f"rotbench::{name}", shapes, lib=_LIBRARY)
        return function

    return register


def check_filled(batch: int, time: int) -> None:
    """Refuse what has no step to scan.

    Raises:
        ValueError: The batch or the time is empty.
    """
    if batch < 1 or time < 1:
        raise ValueError(f"the scan has batch {batch} and time {time}: use at least one sequence of at least one step")


def refuse_second_gradient() -> None:
    """Called in a backward pass: refuse one that is recorded, since the written-out gradient cannot be.

    Raises:
        RuntimeError: The pass runs with create_graph=True.
    """
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        raise RuntimeError("the compiled scan has no second gradient: leave out create_graph, or use the reference")
