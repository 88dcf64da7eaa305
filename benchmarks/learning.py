"""Do RotRNN and LRU of equal parameter count learn, beyond what needs no order? Trainings against simple baselines.

    python benchmarks/learning.py listops-short --seeds 0 1 2
    python benchmarks/learning.py digits --seeds 0 1 2 --json

The baselines: always the most frequent class of the training split, and a linear classifier (scikit-learn's logistic
regression) on what a reader without a sense of order has: counts of tokens, or all the values of a short sequence.
"""

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rotrnn_core import tasks
from rotrnn_core.config import RunConfig
from rotrnn_core.cost import cost, matched
from rotrnn_core.records import Evaluation, HiddenNorms
from rotrnn_core.tasks import Sequences
from rotrnn_core.training import train

SETTINGS: dict[str, dict[str, Any]] = {
    "listops-short": {
        "task": {"name": "listops-short", "validation_size": 400, "test_size": 4000},
        "model": {"d_model": 32, "d_state": 32, "n_layers": 2, "bidirectional": True},
        "training": {"steps": 500, "batch_size": 32, "learning_rate": 1e-2, "recurrence_learning_rate": 5e-3},
    },
    "digits": {
        "task": {"name": "digits"},
        "model": {"d_model": 32, "d_state": 64, "n_layers": 2},
        "training": {"steps": 400, "batch_size": 32, "learning_rate": 1e-2, "recurrence_learning_rate": 5e-3},
    },
}
INTERVALS = {"warmup_steps": 40, "log_every": 50, "evaluate_every": 100_000, "checkpoint_every": 100_000}
CELLS: dict[str, dict[str, Any]] = {
    "rotrnn": {"name": "rotrnn", "n_heads": 8},
    "rotrnn-authors": {"name": "rotrnn", "n_heads": 8, "first_step": "authors"},
    "lru-learned": {"name": "lru"},
    "lru-tied": {"name": "lru", "normaliser": "tied"},
}


def configuration(task: str, cell: str, seed: int) -> RunConfig:
    """The run of a cell, with as many parameters as RotRNN's."""
    settings = SETTINGS[task]

    def of(name: str) -> RunConfig:
        model = {**settings["model"], "cell": CELLS[name]}
        training = {**settings["training"], **INTERVALS, "seed": seed, "device": "cpu"}
        return RunConfig.from_dict({"task": settings["task"], "model": model, "training": training})

    run = of(cell)
    model = matched(run.model, of("rotrnn").model, "parameters", run.task.info.longest)
    return replace(run, model=model)


def baselines(task: str, data_dir: Path) -> dict[str, float]:
    """Test accuracy without a network."""
    data = tasks.load(configuration(task, "rotrnn", 0).task, data_dir)
    frequent = np.bincount(data.train.labels).argmax()
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    linear.fit(_orderless(data.train), data.train.labels)
    return {
        "majority_accuracy": float((data.test.labels == frequent).mean()),
        "linear_accuracy": float(linear.score(_orderless(data.test), data.test.labels)),
    }


def _orderless(sequences: Sequences) -> Any:
    rows = [sequences.sequence(index) for index in range(len(sequences))]
    if rows[0].ndim == 1:
        return np.stack([np.bincount(row, minlength=256) for row in rows]).astype(np.float64)
    return np.stack([row.reshape(-1) for row in rows]).astype(np.float64)


def trained(task: str, cell: str, seed: int, data_dir: Path) -> dict[str, Any]:
    """One training from its first step to its test accuracy."""
    config = configuration(task, cell, seed)
    began = time.perf_counter()
    accuracy, relative = float("nan"), [float("nan")]
    for record in train(config, data_dir=data_dir):
        if isinstance(record, Evaluation) and record.split == "test":
            accuracy = record.accuracy
        elif isinstance(record, HiddenNorms) and record.statistic == "relative":
            relative = list(record.mean)
    return {
        "cell": cell,
        "seed": seed,
        "d_state": config.model.d_state,
        "parameters": cost(config.model, config.task.info).parameters,
        "test_accuracy": accuracy,
        "relative_norm_by_layer": relative,
        "wall_time_s": time.perf_counter() - began,
    }


def main() -> None:
    """Train, and say how well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=SETTINGS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=["rotrnn", "lru-learned"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--data-dir", type=Path, default=Path(".rotbench/data"))
    parser.add_argument("--json", action="store_true", help="One JSON object on stdout.")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    floors = baselines(asked.task, asked.data_dir)
    runs = []
    for cell in asked.cells:
        for seed in asked.seeds:
            runs.append(trained(asked.task, cell, seed, asked.data_dir))
            sys.stderr.write(f"{json.dumps(runs[-1])}\n")
    if asked.json:
        sys.stdout.write(json.dumps({"task": asked.task, **floors, "runs": runs}) + "\n")
        return
    sys.stdout.write(
        f"{asked.task}: majority {floors['majority_accuracy']:.3f}, linear {floors['linear_accuracy']:.3f}\n"
    )
    for cell in asked.cells:
        own = [run for run in runs if run["cell"] == cell]
        found = [run["test_accuracy"] for run in own]
        spread = f" (deviation {stdev(found):.3f}, n = {len(found)})" if len(found) > 1 else ""
        sys.stdout.write(f"{cell}: {own[0]['parameters']} parameters, accuracy {mean(found):.3f}{spread}\n")


if __name__ == "__main__":
    main()
