"""Why does RotRNN's relative norm rise in training? Its first token, which first_step "exact" lets in at full weight.

    python benchmarks/first_step.py --seeds 0 1 2

Trains the short comparison's RotRNN with both first steps. On the probe's sequences the states of each trained layer
are measured twice: as they are, and with the first input of that layer taken away; a layer is linear, so that the
difference is what the first token left behind.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rotrnn_core import tasks
from rotrnn_core.config import RunConfig
from rotrnn_core.model import Block, Network, network_for, valid_steps
from rotrnn_core.recipes import RECIPES
from rotrnn_core.records import Checkpoint, HiddenNorms
from rotrnn_core.tasks import Batch, batch_of
from rotrnn_core.training import train


def configuration(first_step: str, seed: int, depth: int) -> RunConfig:
    """The short comparison's RotRNN with one of the first steps."""
    recipe = RECIPES["listops-short/rotrnn"].config.to_dict()
    recipe["model"]["cell"]["first_step"] = first_step
    recipe["model"]["n_layers"] = depth
    recipe["training"] |= {"seed": seed, "device": "cpu", "checkpoint_every": recipe["training"]["steps"]}
    return RunConfig.from_dict(recipe)


def trained(config: RunConfig, data_dir: Path) -> tuple[Network, list[float]]:
    """The network after its last step, and the relative norm of each layer then."""
    relative: list[float] = []
    network = network_for(config.model, config.task.info)
    with tempfile.TemporaryDirectory() as folder:
        for record in train(config, data_dir=data_dir, checkpoint_dir=Path(folder)):
            if isinstance(record, HiddenNorms) and record.statistic == "relative":
                relative = list(record.mean)
            elif isinstance(record, Checkpoint):
                content = torch.load(Path(folder) / Path(record.path).name, weights_only=True)
                network.load_state_dict(content["network"])
    return network.eval(), relative


@torch.no_grad()
def share_of_first(network: Network, batch: Batch) -> list[float]:
    """For each layer: the mean norm without the first input over the mean norm with it."""
    valid = valid_steps(batch.inputs, batch.lengths)
    assert valid is not None
    read: list[Tensor] = []
    handles = [block.register_forward_pre_hook(lambda _, given: read.append(given[0])) for block in network.blocks]
    network(batch.inputs, batch.lengths)
    for handle in handles:
        handle.remove()
    shares = []
    for block, x in zip(network.blocks, read, strict=True):
        assert isinstance(block, Block)
        u = block.norm(x, valid)
        without = u.clone()
        without[:, 0] = 0

        def norm(states: Tensor) -> Tensor:
            return torch.linalg.vector_norm(states.double(), dim=-1)[valid].mean()

        cell = block.cell
        shares.append(float(norm(cell.states(without, batch.lengths)) / norm(cell.states(u, batch.lengths))))
    return shares


def main() -> None:
    """Train, take apart, and say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--data-dir", type=Path, default=Path(".rotbench/data"))
    parser.add_argument("--json", action="store_true", help="One JSON object on stdout.")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    runs: list[dict[str, Any]] = []
    for first_step in ("exact", "authors"):
        for seed in asked.seeds:
            config = configuration(first_step, seed, asked.depth)
            network, relative = trained(config, asked.data_dir)
            validation = tasks.load(config.task, asked.data_dir).validation
            batch = batch_of(validation, np.arange(config.probe.batch_size))
            shares = share_of_first(network, batch)
            runs.append({"first_step": first_step, "seed": seed, "relative_norm": relative, "without_first": shares})
            sys.stderr.write(json.dumps(runs[-1]) + "\n")
    if asked.json:
        sys.stdout.write(json.dumps({"depth": asked.depth, "runs": runs}) + "\n")
        return
    for first_step in ("exact", "authors"):
        own = [run for run in runs if run["first_step"] == first_step]
        relative, without = (np.mean([run[name] for run in own], axis=0) for name in ("relative_norm", "without_first"))
        for layer, (norm, share) in enumerate(zip(relative, without, strict=True)):
            sys.stdout.write(
                f"{first_step}, layer {layer}: relative norm {norm:.2f}, without its first input {share:.2f} of it\n"
            )


if __name__ == "__main__":
    main()
