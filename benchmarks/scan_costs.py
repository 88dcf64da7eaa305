"""What else does a scan cost: memory, the first call, a step of a stream, and how does time grow with each size?"""

import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from scan_forms import FORMS, SIZES, Size, gradients, layer_of, worst_error

from rotrnn_core.layers import LRU

GROWTH = {
    "time": [Size(1, 2**power, 64, 64) for power in range(8, 18)],
    "width": [Size(4, 1024, width, width) for width in (32, 64, 128, 256, 512, 1024)],
    "batch": [Size(batch, 1024, 64, 64) for batch in (1, 2, 4, 8, 16, 32, 64)],
}
GROWING = {"fused": "fused, compiled", "plain_torch": "plain torch"}
FIRST = """
import sys, time
import torch
began = time.perf_counter(), time.process_time()
from rotrnn_core.ops.scan import scan_projected, warm_kernels
warm_kernels("numba")
u = torch.zeros(1, 2, 4, requires_grad=True)
pair = torch.full((2,), 0.5, dtype=torch.float64)
scan_projected(u, torch.zeros(4, 4), torch.zeros(1, 4, 4), torch.zeros(4), pair, pair)[0].sum().backward()
print(time.perf_counter() - began[0], time.process_time() - began[1])
"""


def peak_memory_mb(form: str, sizes: list[Size]) -> list[float]:
    """What forward and backward hold at most beyond their inputs at each size, in a process of its own."""
    told = json.dumps([vars(size) for size in sizes])
    done = subprocess.run(
        [sys.executable, __file__, form, told], capture_output=True, text=True, timeout=900, check=True
    )
    found: list[float] = json.loads(done.stdout)
    return found


def _measure_memory(form: str, size: Size) -> float:
    gradients(FORMS[form], layer_of(Size(1, 8, size.d_model, size.pairs)))
    layer = layer_of(size)
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = _status_kib("VmRSS")
    found = gradients(FORMS[form], layer)
    del found
    return (_status_kib("VmHWM") - before) * 1024 / 1e6


def _status_kib(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(f"{name}:")))


def first_call_s() -> dict[str, float]:
    """From the import of the scan to the end of its first forward and backward, torch being there already."""
    found = {}
    with tempfile.TemporaryDirectory() as cache:
        for name in ("cold", "warm"):
            done = subprocess.run(
                [sys.executable, "-c", FIRST],
                env=os.environ | {"NUMBA_CACHE_DIR": cache},
                capture_output=True,
                text=True,
                timeout=600,
                check=True,
            )
            found[f"first_call.{name}_s"], found[f"first_call.{name}_processor_s"] = map(float, done.stdout.split())
    return found


def streaming(clock: Callable[[], float], rounds: int) -> dict[str, float]:
    """A step of a stream beside the batch form's share for as many tokens, batch 32 at M, without gradients."""
    size = SIZES["M"]
    cell = LRU(size.d_model, 2 * size.pairs, generator=torch.Generator().manual_seed(0))
    u = torch.randn(size.batch, size.time, size.d_model)
    steps, share, step = 50, [], []
    with torch.no_grad():
        stream, z = cell.stream(), None
        for _ in range(rounds):
            began = clock()
            stream.piece(u)
            share.append((clock() - began) / size.time)
            began = clock()
            for now in u[:, :steps].unbind(1):
                _, z = stream.step(now, z)
            step.append((clock() - began) / steps)
    whole, single = statistics.median(share), statistics.median(step)
    return {"streaming.step_us": 1e6 * single, "streaming.step_over_batch_share_ratio": single / whole}


def long_memory_error() -> float:
    """Worst relative error, outputs and gradients, at time 16,384 and modulus up to .9999, against float64."""
    size = Size(1, 16_384, 8, 32)
    exact = gradients(FORMS["fused"], layer_of(size, torch.float64, slowest=0.9999))
    return worst_error(gradients(FORMS["fused"], layer_of(size, slowest=0.9999)), exact)


def growth(clock: Callable[[], float], rounds: int) -> dict[str, dict[str, list[float]]]:
    """Of forward and backward along each axis: milliseconds, rounds interleaved, and megabytes beyond the inputs."""
    found: dict[str, dict[str, list[float]]] = {}
    for axis, sizes in GROWTH.items():
        found[axis] = {"size": [float(getattr(size, "d_model" if axis == "width" else axis)) for size in sizes]}
        for form in GROWING:
            layers = [layer_of(size) for size in sizes]
            times: list[list[float]] = [[] for _ in sizes]
            for _ in range(rounds):
                for layer, into in zip(layers, times, strict=True):
                    began = clock()
                    gradients(FORMS[form], layer)
                    into.append(1e3 * (clock() - began))
            found[axis][f"{form}.both_ms"] = [statistics.median(row) for row in times]
            found[axis][f"{form}.peak_memory_mb"] = peak_memory_mb(form, sizes)
    return found


def exponent(sizes: list[float], milliseconds: list[float]) -> float:
    """Slope of log time over log size above 1,024 steps."""
    points = [(x, y) for x, y in zip(sizes, milliseconds, strict=True) if x >= 1024]
    logs = torch.tensor(points, dtype=torch.float64).log()
    centred = logs - logs.mean(0)
    return float((centred[:, 0] * centred[:, 1]).sum() / centred[:, 0].square().sum())


def plot(found: dict[str, dict[str, list[float]]], folder: Path) -> Path:
    """Time and memory, one column per axis of the size, all axes logarithmic."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, rows = pyplot.subplots(2, len(found), figsize=(12, 6.4), sharex="col", sharey="row")
    for (axis, measured), column in zip(found.items(), rows.T, strict=True):
        for panel, unit in zip(column, ("both_ms", "peak_memory_mb"), strict=True):
            for form, label in GROWING.items():
                panel.loglog(measured["size"], measured[f"{form}.{unit}"], marker="o", label=label)
            panel.grid(alpha=0.3)
        column[-1].set_xlabel({"time": "steps", "width": "d_model = pairs", "batch": "batch"}[axis])
    rows[0, 0].set_ylabel("forward + backward, ms")
    rows[1, 0].set_ylabel("memory beyond the inputs, MB")
    rows[0, 0].legend()
    figure.tight_layout()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "scan-growth.svg"
    figure.savefig(path)
    return path


if __name__ == "__main__":
    measured = [_measure_memory(sys.argv[1], Size(**size)) for size in json.loads(sys.argv[2])]
    sys.stdout.write(json.dumps(measured) + "\n")
