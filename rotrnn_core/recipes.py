"""Which settings are known to be worth running? Complete configurations with their source; needs no torch.

Marks: "S" sourced, as the source states it; "U" unverified: parts of it are a choice among several published values or
are this project's own.
"""

from dataclasses import dataclass
from typing import Any, Literal

from rotrnn_core.config import (
    LRUConfig,
    ModelConfig,
    ProbeConfig,
    RotRNNConfig,
    RunConfig,
    TaskConfig,
    TrainingConfig,
)


@dataclass(frozen=True)
class Recipe:
    """A run worth repeating.

    Args:
        name: "task/cell", its key in RECIPES.
        title: For people.
        source: Where the numbers come from.
        mark: "S" sourced, "U" unverified.
        config: The complete run.
    """

    name: str
    title: str
    source: str
    mark: Literal["S", "U"]
    config: RunConfig


def _listops_rotrnn() -> Recipe:
    epochs, batch_size, train_size = 40, 50, 96_000
    steps = epochs * (train_size // batch_size)
    return Recipe(
        name="listops/rotrnn",
        title="RotRNN on ListOps",
        source="the authors' sweep grid, GitHub raresdolga/s5; the winning cell is not published, this is one of it",
        mark="U",
        config=RunConfig(
            task=TaskConfig(name="listops"),
            model=ModelConfig(
                cell=RotRNNConfig(n_heads=32, decay_min=0.5, decay_max=0.999, max_phase=0.0314),
                d_model=128,
                d_state=128,
                n_layers=8,
                bidirectional=True,
                gate="full_glu",
                dropout=0.05,
            ),
            training=TrainingConfig(
                steps=steps,
                batch_size=batch_size,
                learning_rate=1e-3,
                recurrence_learning_rate=5e-4,
                weight_decay=0.05,
                parameter_groups="B_fast_and_C_decay",
                warmup_steps=train_size // batch_size,
                log_every=50,
                evaluate_every=train_size // batch_size,
                checkpoint_every=train_size // batch_size,
            ),
            probe=ProbeConfig(every=train_size // batch_size // 4),
        ),
    )


def _listops_lru() -> Recipe:
    steps = 80_000
    return Recipe(
        name="listops/lru",
        title="LRU on ListOps",
        source="LRU, arXiv:2303.06349, tables 8 and 9 (N = 256 complex channels); learning rate from a public port",
        mark="S",
        config=RunConfig(
            task=TaskConfig(name="listops"),
            model=ModelConfig(
                cell=LRUConfig(normaliser="learned", r_min=0.0, r_max=0.99, max_phase=6.28),
                d_model=128,
                d_state=512,
                n_layers=6,
                gate="full_glu",
            ),
            training=TrainingConfig(
                steps=steps,
                batch_size=32,
                learning_rate=3e-3,
                recurrence_learning_rate=1.5e-3,
                weight_decay=0.05,
                warmup_steps=steps // 10,
                log_every=50,
                evaluate_every=2_000,
                checkpoint_every=2_000,
            ),
            probe=ProbeConfig(every=500),
        ),
    )


SHORT_TASK: dict[str, Any] = {"name": "listops-short", "validation_size": 400}
SHORT_MODEL: dict[str, Any] = {"d_model": 32, "d_state": 32, "n_layers": 2}
SHORT_TRAINING: dict[str, Any] = {
    "steps": 200,
    "batch_size": 16,
    "learning_rate": 1e-2,
    "recurrence_learning_rate": 5e-3,
    "warmup_steps": 20,
    "log_every": 5,
    "evaluate_every": 100,
    "checkpoint_every": 100,
}
SHORT_PROBE: dict[str, Any] = {"every": 10, "batch_size": 16, "positions": 32}
SHORT_CELLS: dict[str, dict[str, Any]] = {
    "rotrnn": {"name": "rotrnn", "n_heads": 8},
    "lru-learned": {"name": "lru", "normaliser": "learned"},
    "lru-tied": {"name": "lru", "normaliser": "tied"},
}
"""Settings of the short comparison, equal for all cells, chosen for minutes on two processor cores."""


def _listops_short(label: str) -> Recipe:
    config = RunConfig.from_dict(
        {
            "task": SHORT_TASK,
            "model": {"cell": SHORT_CELLS[label], **SHORT_MODEL},
            "training": SHORT_TRAINING,
            "probe": SHORT_PROBE,
        }
    )
    return Recipe(
        name=f"listops-short/{label}",
        title=f"{config.model.cell.title} ({label}) on ListOps short",
        source="this project's own choice, for machines without a GPU; not comparable with published numbers",
        mark="U",
        config=config,
    )


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe for recipe in (_listops_rotrnn(), _listops_lru(), *map(_listops_short, SHORT_CELLS))
}
"""Every recipe by name."""


def demo_sweep() -> dict[str, Any]:
    """The body of POST /v1/sweeps that compares RotRNN and LRU over depths and seeds in minutes."""
    return {
        "name": "stability-demo",
        "config": RECIPES["listops-short/rotrnn"].config.to_dict(),
        "grid": {
            "model.cell": list(SHORT_CELLS.values()),
            "model.n_layers": [1, 2, 4],
            "training.seed": [0, 1, 2],
        },
    }
