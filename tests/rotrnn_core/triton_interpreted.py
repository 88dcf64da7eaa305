"""What does the GPU scan give in triton's interpreter? Run as a script: one JSON object of figures and refusals.

A process of its own, because the interpreter is chosen before triton is imported.
"""

import json
import os
from collections.abc import Callable

os.environ["TRITON_INTERPRET"] = "1"

import torch
from torch import Tensor
from triton.runtime.interpreter import InterpretedFunction

from rotrnn_core.ops.scan import scan_sequential
from rotrnn_core.ops.scan import triton_scan as subject

NAMES = ("states", "drive", "decay", "phase", "h0")
CASES = {
    "one step": {"time": 1},
    "a tail": {"time": 13},
    "backwards": {"time": 13, "reverse": True},
    "from zero": {"time": 8, "started": False},
    "chunks": {"time": 21, "chunks": 3},
    "chunks backwards": {"time": 22, "chunks": 2, "reverse": True},
    "chunks from zero": {"time": 17, "chunks": 4, "started": False},
    "two blocks of pairs": {"time": 5, "pairs": 33, "batch": 2},
    "bfloat16": {"time": 13, "chunks": 2, "dtype": "bfloat16"},
    "strided": {"time": 9, "strided": True},
}


def call_once_patched(function: InterpretedFunction, *args: object, **kwargs: object) -> object:
    """A device call without patching triton anew: the kernel's own launch has done it."""
    return function.rewrite()(*args, **kwargs)


def inputs(
    time: int, pairs: int, batch: int, dtype: torch.dtype, started: bool, strided: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Drive, decay, phase and the state before the first step."""
    generator = torch.Generator().manual_seed(time)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator, dtype=torch.float64)

    shape = (2 * pairs, time, batch) if strided else (batch, time, 2 * pairs)
    drive = (uniform(*shape) - 0.5).to(dtype)
    drive = (drive.permute(2, 1, 0) if strided else drive).requires_grad_()
    decay = (0.05 + 0.94 * uniform(pairs)).requires_grad_()
    phase = (7 * uniform(pairs) - 0.5).requires_grad_()
    return drive, decay, phase, (uniform(batch, 2 * pairs) - 0.5).to(dtype).requires_grad_() if started else None


def compare(
    time: int,
    pairs: int = 3,
    batch: int = 1,
    dtype: str = "float32",
    started: bool = True,
    strided: bool = False,
    reverse: bool = False,
    chunks: int = 1,
) -> dict[str, float]:
    """Largest error of the states and of every gradient against the definition in float64, over the largest value."""
    drive, decay, phase, h0 = inputs(time, pairs, batch, getattr(torch, dtype), started, strided)
    asked = [drive, decay, phase, *([] if h0 is None else [h0])]
    weights = torch.sin(torch.arange(drive.numel(), dtype=torch.float64)).view(drive.shape)

    def run(scan: Callable[..., Tensor], *given: Tensor | None, **how: int) -> list[Tensor]:
        states = scan(given[0], decay, phase, given[1], reverse=reverse, **how)
        loss = (states * weights).sum()
        return [states, *torch.autograd.grad(loss, asked, allow_unused=True, materialize_grads=True)]

    wanted = run(scan_sequential, drive.double(), None if h0 is None else h0.double())
    found = run(subject.scan_triton, drive, h0, chunks=chunks)
    errors = {
        name: ((a.double() - b).abs().max() / b.abs().max().clamp(min=1e-3)).item()
        for name, a, b in zip(NAMES, found, wanted, strict=False)
    }
    kept = all(a.dtype == b.dtype for a, b in zip(found, [drive, *asked], strict=True))
    return errors | {"changes of dtype": float(not kept)}


def differing() -> list[str]:
    """What comes out otherwise the second time."""
    drive, decay, phase, _ = asked = inputs(21, 3, 2, torch.float32, False, False)

    def run() -> list[Tensor]:
        states = subject.scan_triton(drive, decay, phase, chunks=3)
        return [states, *torch.autograd.grad(states.square().sum(), asked[:3])]

    return [name for name, a, b in zip(NAMES, run(), run(), strict=False) if not torch.equal(a, b)]


def slow_pair_error() -> float:
    """Error over 1,024 steps near the unit circle, where an eigenvalue rounded to float32 drifts."""
    generator = torch.Generator().manual_seed(1)
    drive = torch.randn(1, 1024, 4, generator=generator)
    decay = torch.tensor([0.9999, 0.99999], dtype=torch.float64)
    phase = torch.tensor([6.1, 0.3], dtype=torch.float64)
    wanted = scan_sequential(drive.double(), decay, phase)
    return ((subject.scan_triton(drive, decay, phase) - wanted).abs().max() / wanted.abs().max()).item()


def refusal_of(action: Callable[[], object]) -> str:
    """What an action is refused with."""
    try:
        action()
    except (ValueError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def twice_differentiated() -> None:
    drive, decay, phase, _ = inputs(3, 2, 1, torch.float32, False, False)
    (first,) = torch.autograd.grad(subject.scan_triton(drive, decay, phase).square().sum(), drive, create_graph=True)
    first.sum().backward()


def main() -> None:
    InterpretedFunction.__call__ = call_once_patched
    torch.use_deterministic_algorithms(True)  # fills fresh memory with NaN
    decay = torch.full((2,), 0.5, dtype=torch.float64)
    deep, subject.LEVELS = subject.LEVELS, 2
    errors = {name: compare(**case) for name, case in CASES.items()}
    refusals = {
        "empty": refusal_of(lambda: subject.scan_triton(torch.zeros(0, 3, 4), decay, decay)),
        "no step": refusal_of(lambda: subject.scan_triton(torch.zeros(1, 0, 4), decay, decay)),
        "float64": refusal_of(lambda: subject.scan_triton(torch.zeros(1, 3, 4).double(), decay, decay)),
        "twice": refusal_of(twice_differentiated),
    }
    again = differing()
    subject.LEVELS = deep
    answer = {"errors": errors, "differing": again, "slow_pair": slow_pair_error(), "refusals": refusals}
    print(json.dumps(answer))  # noqa: T201


if __name__ == "__main__":
    main()
