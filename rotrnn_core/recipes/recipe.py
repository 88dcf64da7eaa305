"""What is a recipe? A complete run with its source, and the table row that the published ones are built from."""

from dataclasses import dataclass
from typing import Literal

from rotrnn_core.cells import CellConfig
from rotrnn_core.config import ModelConfig, ProbeConfig, RunConfig, TaskConfig, TrainingConfig


@dataclass(frozen=True)
class Recipe:
    """A run worth repeating.

    Args:
        name: "task/cell", its key in RECIPES.
        title: For people.
        source: Where the numbers come from.
        mark: "S" sourced, as the source states it; "U" unverified: parts of it are a choice among several published
            values or are this project's own.
        config: The complete run.
    """

    name: str
    title: str
    source: str
    mark: Literal["S", "U"]
    config: RunConfig


@dataclass(frozen=True)
class Row:
    """One row of a published table; the length is given in epochs or in steps."""

    task: str
    cell: CellConfig
    n_layers: int
    d_model: int
    d_state: int
    batch_size: int
    learning_rate: float
    recurrence_learning_rate: float
    epochs: int = 0
    steps: int = 0
    warmup_epochs: int = 1
    dropout: float = 0.0
    weight_decay: float = 0.05
    bidirectional: bool = True
    gate: Literal["full_glu", "half_glu1", "half_glu2", "gelu"] = "half_glu1"
    groups: Literal["standard", "B_and_C_decay", "B_fast_and_C_decay", "no_BC_decay"] = "standard"

    def recipe(self, title: str, source: str, mark: Literal["S", "U"]) -> Recipe:
        """The complete run. A length in epochs warms up for `warmup_epochs`, a length in steps for a tenth of them."""
        task = TaskConfig(name=self.task)
        per_epoch = task.size("train") // self.batch_size
        steps = self.epochs * per_epoch or self.steps
        evaluate_every = per_epoch if self.epochs else 2_000
        config = RunConfig(
            task=task,
            model=ModelConfig(
                cell=self.cell,
                d_model=self.d_model,
                d_state=self.d_state,
                n_layers=self.n_layers,
                bidirectional=self.bidirectional,
                gate=self.gate,
                dropout=self.dropout,
            ),
            training=TrainingConfig(
                steps=steps,
                batch_size=self.batch_size,
                learning_rate=self.learning_rate,
                recurrence_learning_rate=self.recurrence_learning_rate,
                weight_decay=self.weight_decay,
                parameter_groups=self.groups,
                warmup_steps=self.warmup_epochs * per_epoch if self.epochs else steps // 10,
                log_every=50,
                evaluate_every=evaluate_every,
                checkpoint_every=evaluate_every,
            ),
            probe=ProbeConfig(every=evaluate_every // 4),
        )
        return Recipe(f"{self.task}/{self.cell.name}", f"{title} on {task.info.title}", source, mark, config)
