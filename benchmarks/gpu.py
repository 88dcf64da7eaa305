"""How far is the scan on a GPU from the memory's own pace? Ours beside plain torch and public scans, in one run.

    python benchmarks/gpu.py
    python benchmarks/gpu.py --json

Needs a CUDA device; without one it says so and ends with 2. Each form is first held against the definition in float64.
The floor is bytes at the rate of a copy measured in the same run: 2 passes over the drive forward, 3 more backward.
accelerated-scan is measured where it is installed; it is another recurrence (real, one gate per step) of equal bytes.
"""

import argparse
import importlib.util
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from rotrnn_core.ops.scan import scan_blocked, scan_sequential

SIZES = {"long": (32, 16_384, 256), "few": (2, 16_384, 128), "listops": (32, 2_048, 128)}
"""(batch, time, pairs); at "few" the sequence must be cut to keep the device busy."""
ROUNDS = 25
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2**-7}


@dataclass(frozen=True)
class Problem:
    """One set of inputs."""

    drive: Tensor
    decay: Tensor
    phase: Tensor


def problem(batch: int, time: int, pairs: int, dtype: torch.dtype) -> Problem:
    """Normal drive and slow pairs."""
    generator = torch.Generator("cuda").manual_seed(0)
    drive = torch.randn(batch, time, 2 * pairs, generator=generator, device="cuda").to(dtype).requires_grad_()
    decay = torch.linspace(0.9, 0.9999, pairs, dtype=torch.float64, device="cuda").requires_grad_()
    phase = torch.linspace(0.01, 6.2, pairs, dtype=torch.float64, device="cuda").requires_grad_()
    return Problem(drive, decay, phase)


def forms() -> Iterator[tuple[str, Callable[[Problem], Tensor], bool]]:
    """Name, function, and whether its gradient is measured; accelerated-scan stands by itself."""
    from rotrnn_core.ops.scan.triton_scan import scan_triton

    yield "triton", lambda given: scan_triton(given.drive, given.decay, given.phase), True
    yield "triton_whole", lambda given: scan_triton(given.drive, given.decay, given.phase, chunks=1), True
    yield "triton_8_chunks", lambda given: scan_triton(given.drive, given.decay, given.phase, chunks=8), True
    yield "torch_blocked", lambda given: scan_blocked(given.drive, given.decay, given.phase), True
    yield "torch_associative_scan", associative, False


def associative(given: Problem) -> Tensor:
    """torch's own operator, on pairs of an eigenvalue and a state."""
    from torch._higher_order_ops.associative_scan import associative_scan

    def combine(one: tuple[Tensor, ...], two: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        a_re, a_im, x_re, x_im = one
        b_re, b_im, y_re, y_im = two
        return (
            a_re * b_re - a_im * b_im,
            a_re * b_im + a_im * b_re,
            b_re * x_re - b_im * x_im + y_re,
            b_re * x_im + b_im * x_re + y_im,
        )

    re, im = given.drive.detach().float().chunk(2, dim=-1)
    factor_re = (given.decay * torch.cos(given.phase)).detach().float().expand_as(re)
    factor_im = (given.decay * torch.sin(given.phase)).detach().float().expand_as(im)
    found = associative_scan(combine, (factor_re, factor_im, re, im), dim=1, combine_mode="generic")
    return torch.cat(found[2:], dim=-1).to(given.drive.dtype)


def accelerated(batch: int, time: int, pairs: int) -> Callable[[], Tensor]:
    """accelerated-scan's kernel on as many numbers: a gate and a token for each pair and step."""
    from accelerated_scan.warp import scan

    gates = torch.rand(batch, pairs, time, device="cuda")
    tokens = torch.randn(batch, pairs, time, device="cuda")
    return lambda: scan(gates, tokens)


def milliseconds(action: Callable[[], object]) -> float:
    """Median time of an action on the device."""
    for _ in range(3):
        action()
    times = []
    for _ in range(ROUNDS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        action()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def error_of(form: Callable[[Problem], Tensor], dtype: torch.dtype) -> float:
    """Largest error over the largest value, at a small size with a tail."""
    given = problem(3, 1_111, 40, dtype)
    wanted = scan_sequential(given.drive.detach().double(), given.decay.detach(), given.phase.detach())
    return ((form(given).detach().double() - wanted).abs().max() / wanted.abs().max()).item()


def measure(name: str, dtype: torch.dtype) -> dict[str, float]:
    """All forms at one size: milliseconds, and multiples of the floor."""
    size = SIZES[name]
    given = problem(*size, dtype)
    label = f"{name}_{str(dtype).removeprefix('torch.')}"
    other = torch.empty_like(given.drive)
    copy_ms = milliseconds(lambda: other.copy_(given.drive.detach()))
    found = {
        f"{label}_copy_gb_per_s": 2 * other.nbytes / copy_ms / 1e6,
        f"{label}_floor_forward_ms": copy_ms,
        f"{label}_floor_both_ms": 2.5 * copy_ms,
    }
    for form, run, with_gradient in forms():
        error = error_of(run, dtype)
        if not error <= TOLERANCE[dtype]:
            raise SystemExit(f"{form} is not the definition in {dtype}: error {error:.1e}")

        def both(run: Callable[[Problem], Tensor] = run) -> None:
            torch.autograd.grad(run(given), (given.drive, given.decay, given.phase), other)

        with torch.no_grad():
            found[f"{label}_{form}_forward_ms"] = milliseconds(lambda run=run: run(given))
        if with_gradient:
            found[f"{label}_{form}_both_ms"] = milliseconds(both)
    if importlib.util.find_spec("accelerated_scan") is not None and dtype == torch.float32:
        found[f"{label}_accelerated_scan_forward_ms"] = milliseconds(accelerated(*size))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one object, figure and unit in each key")
    wanted = parser.parse_args()
    if not torch.cuda.is_available():
        sys.stderr.write("no CUDA device answers here: this benchmark measures nothing without one\n")
        raise SystemExit(2)
    found: dict[str, float | str] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    for name in SIZES:
        for dtype in (torch.float32, torch.bfloat16):
            found |= measure(name, dtype)
            torch.cuda.empty_cache()
    if wanted.json:
        sys.stdout.write(json.dumps(found) + "\n")
    else:
        for key, value in found.items():
            figure = f"{value:>12.4g}" if isinstance(value, float) else value
            sys.stdout.write(f"{key:<56} {figure}\n")


if __name__ == "__main__":
    main()
