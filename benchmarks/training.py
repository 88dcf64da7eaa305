"""How far is a whole training step from the matrix products in it, and which part takes the rest?

    python benchmarks/training.py
    python benchmarks/training.py --json --size demo
    python benchmarks/training.py --workers 2
    python benchmarks/training.py --threads 1 --clock processor

A step is what `train` does between two records: batch, forward, backward, search for values that are not finite,
update. Its floor is its own matrix products, each at its shape and on memory that lies ready, timed in the same rounds;
what the backward computes again is not in the floor. Parts are timed alone, forward and backward, on inputs of the
step's shape: their sum is not the step exactly. `--workers n` runs n processes of one thread and of all threads. On a
machine that others use, one thread and its processor time still say what an idle machine would.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from rotrnn_core import tasks
from rotrnn_core.config import RunConfig
from rotrnn_core.model import Network, network_for
from rotrnn_core.records import Loss
from rotrnn_core.tasks import Sampler, batch_of
from rotrnn_core.tasks.dataset import Dataset, of_one_length
from rotrnn_core.training.loop import train
from rotrnn_core.training.memory import keep_freed_memory
from rotrnn_core.training.optimiser import make_optimiser, set_rates
from rotrnn_core.training.probe import Probe


@dataclass(frozen=True)
class Size:
    """The shape of a run."""

    batch: int
    time: int
    d_model: int
    pairs: int
    layers: int
    heads: int
    gate: str


SIZES = {
    "step": Size(batch=16, time=1024, d_model=64, pairs=64, layers=4, heads=16, gate="full_glu"),
    "listops": Size(batch=32, time=2048, d_model=128, pairs=64, layers=6, heads=32, gate="full_glu"),
    "demo": Size(batch=32, time=200, d_model=64, pairs=32, layers=2, heads=8, gate="half_glu1"),
}
"""`demo` is the configuration that needs no settings, at the longest sequences of its task."""

CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}


def config_of(size: Size, dropout: float, backend: str) -> RunConfig:
    """A run of this size that says its loss at every step and probes only before the first."""
    often = 1_000_000
    return RunConfig.from_dict(
        {
            "model": {
                "cell": {"name": "rotrnn", "n_heads": size.heads},
                "d_model": size.d_model,
                "d_state": 2 * size.pairs,
                "n_layers": size.layers,
                "gate": size.gate,
                "dropout": dropout,
            },
            "training": {
                "steps": often,
                "batch_size": size.batch,
                "log_every": 1,
                "evaluate_every": often,
                "device": "cpu",
                "backend": backend,
            },
            "probe": {"every": often, "batch_size": size.batch},
        }
    )


def dataset_of(size: Size) -> Dataset:
    """Random tokens of one length."""
    rng = np.random.default_rng(0)
    count = 8 * size.batch
    split = of_one_length(rng.integers(0, 15, (count, size.time), dtype=np.uint8), rng.integers(0, 10, count))
    return Dataset(split, split, split)


def steps_of(config: RunConfig, data: Dataset) -> Iterator[None]:
    """One whole training step at each turn."""
    with tempfile.TemporaryDirectory() as folder, patch.object(tasks, "load", return_value=data):
        for record in train(config, data_dir=Path(folder)):
            if isinstance(record, Loss):
                yield


def products_of(size: Size) -> Callable[[], None]:
    """The matrix products of a step: each linear map's output, and the gradients by its input and its weight."""
    rows, d_model, d_state = size.batch * size.time, size.d_model, 2 * size.pairs
    glu = {"full_glu": 2, "gelu": 0}.get(size.gate, 1)
    shapes = [(d_model, d_state), (d_state, d_model), *[(d_model, d_model)] * glu]
    made = []
    for fan_in, fan_out in shapes:
        x, y, weight = torch.randn(rows, fan_in), torch.randn(rows, fan_out), torch.randn(fan_in, fan_out)
        made.append((x, y, weight, torch.empty_like(y), torch.empty_like(x), torch.empty_like(weight)))

    def run() -> None:
        for _ in range(size.layers):
            for x, y, weight, out, by_input, by_weight in made:
                torch.mm(x, weight, out=out)
                torch.mm(y, weight.t(), out=by_input)
                torch.mm(x.t(), y, out=by_weight)

    return run


def cell_products_of(size: Size) -> Callable[[], None]:
    """The products of the cells alone."""
    return products_of(Size(**{**vars(size), "gate": "gelu"}))


def parts_of(size: Size, network: Network, config: RunConfig, data: Dataset) -> dict[str, Callable[[], object]]:
    """Each part of a step, over all layers."""
    network.train()
    block = network.blocks[0]
    x = torch.randn(size.batch, size.time, size.d_model).requires_grad_()
    grad = torch.randn_like(x)
    batch = batch_of(data.train, np.arange(size.batch))
    optimiser = make_optimiser(network, config.training)
    set_rates(optimiser, 1, config.training)
    sampler = Sampler(data.train, size.batch, seed=0)
    probe = Probe(batch, config.probe.positions)

    def there_and_back(part: Callable[[Tensor], Tensor]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(size.layers):
                part(x).backward(grad)
                x.grad = None

        return run

    def ends() -> None:
        encoded = network._encode(batch.inputs)
        torch.nn.functional.cross_entropy(network.classifier(encoded.mean(1)), batch.labels).backward()

    for parameter in network.parameters():
        parameter.grad = torch.zeros_like(parameter)
    return {
        "cell": there_and_back(block.cell),
        "norm": there_and_back(block.norm),
        "gate": there_and_back(block.gate),
        "encoder_and_classifier": ends,
        "optimiser": optimiser.step,
        "loader": lambda: next(sampler),
        "probe": lambda: probe.measure(network, 0),
    }


def measure(size: Size, rounds: int, dropout: float, backend: str, clock: Callable[[], float]) -> dict[str, float]:
    """Medians in milliseconds over interleaved rounds, and what they come to."""
    config, data = config_of(size, dropout, backend), dataset_of(size)
    steps = steps_of(config, data)
    network = network_for(config.model, config.task.info, torch.Generator().manual_seed(0))
    timed: dict[str, Callable[[], object]] = {
        "step": lambda: next(steps),
        "floor": products_of(size),
        "cell_products": cell_products_of(size),
        **parts_of(size, network, config, data),
    }
    taken: dict[str, list[float]] = {name: [] for name in timed}
    for turn in range(rounds + 1):
        for name, action in timed.items():
            began = clock()
            action()
            if turn:
                taken[name].append(1e3 * (clock() - began))
    found = {f"{name}_ms": statistics.median(values) for name, values in taken.items()}
    every = RunConfig().probe.every
    scan_ms = max(0.0, found["cell_ms"] - found["cell_products_ms"])
    parts_ms = sum(found[f"{name}_ms"] for name in ("cell", "norm", "gate", "encoder_and_classifier", "optimiser"))
    ratios = (step / floor for step, floor in zip(taken["step"], taken["floor"], strict=True))
    return found | {
        "scan_ms": scan_ms,
        "rest_ms": found["step_ms"] - parts_ms,
        "step_over_floor_ratio": statistics.median(ratios),
        "scan_share_ratio": scan_ms / found["step_ms"],
        "probe_share_ratio": found["probe_ms"] / (every * found["step_ms"] + found["probe_ms"]),
        "tokens_per_s": 1e3 * size.batch * size.time / found["step_ms"],
    }


def side_by_side(workers: int, threads: int, size: str, seconds: float) -> float:
    """Tokens per second of all of `workers` processes that train at once, each on `threads` threads."""
    command = [sys.executable, __file__, "--size", size, "--pace", str(seconds), "--threads", str(threads)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(workers)]
    return sum(float(process.communicate()[0]) for process in running)


def pace(size: Size, seconds: float) -> float:
    """Tokens per second of this process alone."""
    steps = steps_of(config_of(size, 0.1, "auto"), dataset_of(size))
    for _ in range(3):
        next(steps)
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        next(steps)
        count += 1
    return count * size.batch * size.time / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one object, figure and unit in each key")
    parser.add_argument("--size", choices=SIZES, action="append", help="may be given again; all when absent")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--threads", type=int, help="torch's own choice when absent")
    parser.add_argument("--workers", type=int, help="measure so many processes at once instead")
    parser.add_argument("--pace", type=float, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    keep_freed_memory()
    if wanted.threads:
        torch.set_num_threads(wanted.threads)
    names = wanted.size or list(SIZES)
    if wanted.pace:
        sys.stdout.write(f"{pace(SIZES[names[0]], wanted.pace)}\n")
        return
    found: dict[str, float | str] = {"torch": torch.__version__, "threads_count": torch.get_num_threads()}
    for name in names:
        if wanted.workers:
            for threads in sorted({1, torch.get_num_threads()}):
                for workers in range(1, wanted.workers + 1):
                    key = f"{name}_{workers}_workers_{threads}_threads_tokens_per_s"
                    found[key] = side_by_side(workers, threads, name, 8)
        else:
            measured = measure(SIZES[name], wanted.rounds, wanted.dropout, wanted.backend, CLOCKS[wanted.clock])
            found |= {f"{name}_{key}": value for key, value in measured.items()}
    if wanted.json:
        sys.stdout.write(json.dumps(found) + "\n")
    else:
        for key, value in found.items():
            sys.stdout.write(f"{key:<52} {value:>14,.3f}\n" if isinstance(value, float) else f"{key:<52} {value}\n")


if __name__ == "__main__":
    main()
