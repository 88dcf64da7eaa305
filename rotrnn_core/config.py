"""What is a run? The frozen configuration of one training, checked where it is made; needs no torch.

Every field has a default, so that `RunConfig.from_dict({})` is a complete run. A value that cannot be right raises
`ConfigError`, which names the field, the value and the remedy.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from rotrnn_core.catalogue import TASKS, TaskInfo
from rotrnn_core.cells import CELLS, CellConfig, LRUConfig, RotRNNConfig
from rotrnn_core.checks import ConfigError, check_scalar, check_scalars, field_types, require

__all__ = [
    "CELLS",
    "TASKS",
    "Backend",
    "CellConfig",
    "ConfigError",
    "LRUConfig",
    "ModelConfig",
    "ProbeConfig",
    "RotRNNConfig",
    "RunConfig",
    "TaskConfig",
    "TaskInfo",
    "TrainingConfig",
    "cell_config",
]


Backend = Literal["auto", "reference", "torch", "numba", "triton"]
"""How the scan runs; "auto" takes the fastest form that the device offers."""


@dataclass(frozen=True)
class TaskConfig:
    """Which data. A size left at None is the task's own; `release` reads the published files instead of a generator."""

    path: ClassVar[str] = "task"

    name: str = "listops-short"
    data_seed: int = 0
    train_size: int | None = None
    validation_size: int | None = None
    test_size: int | None = None
    release: bool = False

    def __post_init__(self) -> None:
        check_scalars(self)
        require(self.name in TASKS, "task.name", self.name, f"known tasks are {', '.join(sorted(TASKS))}")
        require(0 <= self.data_seed < 2**53, "task.data_seed", self.data_seed, "use a whole number in [0, 2**53)")
        info = TASKS[self.name]
        both = info.generated and info.released
        require(both or not self.release, "task.release", self.release, f"leave it out: {self.name} has one source")
        drawn = info.generated and not self.release
        seed_counts = info.seeded and not self.release
        require(
            seed_counts or self.data_seed == 0, "task.data_seed", self.data_seed, "use 0: the files are what they are"
        )
        for split in ("train", "validation", "test"):
            size, most = getattr(self, f"{split}_size"), (10 if drawn else 1) * getattr(info, f"{split}_size")
            require(
                size is None or 1 <= size <= most,
                f"task.{split}_size",
                size,
                f"use a whole number in [1, {most}], or leave it out for {getattr(info, f'{split}_size')}",
            )

    @property
    def info(self) -> TaskInfo:
        """The task's entry in TASKS."""
        return TASKS[self.name]

    @property
    def needs_data(self) -> str | None:
        """Name of the published data that have to be on the machine; None where the examples are made."""
        reads = self.release or (self.info.released and not self.info.generated)
        return self.name if reads else None

    def size(self, split: str) -> int:
        """Number of examples in "train", "validation" or "test"."""
        chosen = getattr(self, f"{split}_size")
        return int(getattr(self.info, f"{split}_size") if chosen is None else chosen)


@dataclass(frozen=True)
class ModelConfig:
    """The network: encoder, n_layers blocks (norm, cell, gate, residual), mean over time, classifier."""

    path: ClassVar[str] = "model"

    cell: CellConfig = field(default_factory=RotRNNConfig)
    d_model: int = 64
    d_state: int = 64
    n_layers: int = 2
    bidirectional: bool = False
    gate: Literal["full_glu", "half_glu1", "half_glu2", "gelu"] = "half_glu1"
    norm: Literal["batch", "layer"] = "batch"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_scalars(self)
        known = ", ".join(kind.__name__ for kind in CELLS.values())
        require(type(self.cell) in CELLS.values(), "model.cell", self.cell, f"use one of {known}")
        for name, most in (("d_model", 8192), ("d_state", 65536), ("n_layers", 256)):
            value = getattr(self, name)
            require(1 <= value <= most, f"model.{name}", value, f"use a whole number in [1, {most}]")
        require(0 <= self.dropout < 1, "model.dropout", self.dropout, "use a value in [0, 1)")
        self.cell.check_sizes(self.d_model, self.d_state)


@dataclass(frozen=True)
class TrainingConfig:
    """How the network is trained: optimiser, schedule, intervals in optimiser steps."""

    path: ClassVar[str] = "training"

    seed: int = 0
    steps: int = 400
    batch_size: int = 32
    learning_rate: float = 3e-3
    recurrence_learning_rate: float = 1e-3
    weight_decay: float = 0.05
    parameter_groups: Literal["standard", "B_and_C_decay", "B_fast_and_C_decay", "no_BC_decay"] = "standard"
    warmup_steps: int = 40
    final_learning_rate: float = 1e-7
    log_every: int = 10
    evaluate_every: int = 100
    checkpoint_every: int = 100
    device: Literal["auto", "cpu", "cuda"] = "auto"
    backend: Backend = "auto"

    def __post_init__(self) -> None:
        check_scalars(self)
        require(0 <= self.seed < 2**53, "training.seed", self.seed, "use a whole number in [0, 2**53)")
        for name, least, most in (
            ("steps", 1, 10_000_000),
            ("batch_size", 1, 65_536),
            ("log_every", 1, 10_000_000),
            ("evaluate_every", 1, 10_000_000),
            ("checkpoint_every", 1, 10_000_000),
        ):
            value = getattr(self, name)
            require(least <= value <= most, f"training.{name}", value, f"use a whole number in [{least}, {most}]")
        for name in ("learning_rate", "recurrence_learning_rate"):
            value = getattr(self, name)
            require(0 < value <= 10, f"training.{name}", value, "use a positive number, at most 10")
        require(
            0 <= self.final_learning_rate <= self.learning_rate,
            "training.final_learning_rate",
            self.final_learning_rate,
            f"use a number in [0, learning_rate = {self.learning_rate!r}]",
        )
        require(0 <= self.weight_decay <= 10, "training.weight_decay", self.weight_decay, "use a number in [0, 10]")
        require(
            0 <= self.warmup_steps < self.steps or self.warmup_steps == 0,
            "training.warmup_steps",
            self.warmup_steps,
            f"use a whole number in [0, steps = {self.steps})",
        )


@dataclass(frozen=True)
class ProbeConfig:
    """The hidden-norm probe: every so many steps on one fixed batch of the validation split."""

    path: ClassVar[str] = "probe"

    every: int = 50
    batch_size: int = 32
    positions: int = 64

    def __post_init__(self) -> None:
        check_scalars(self)
        require(1 <= self.every <= 10_000_000, "probe.every", self.every, "use a whole number in [1, 10000000]")
        require(1 <= self.batch_size <= 4096, "probe.batch_size", self.batch_size, "use a whole number in [1, 4096]")
        require(1 <= self.positions <= 64, "probe.positions", self.positions, "use a whole number in [1, 64]")


@dataclass(frozen=True)
class RunConfig:
    """One training run, complete and checked."""

    task: TaskConfig = field(default_factory=TaskConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    probe: ProbeConfig = field(default_factory=ProbeConfig)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> "RunConfig":
        """Build a run from nested plain values; a field left out takes its default.

        `model.cell` may be a name alone ("lru") or an object with a name and its options.

        Raises:
            ConfigError: An unknown field or cell, a wrong type, a number that is not finite or not in range.
        """
        built: RunConfig = _build(cls, given, "")
        return built

    @staticmethod
    def part_from_dict(part: str, given: object) -> Any:
        """One part ("task", "model" ..) as `from_dict` builds it.

        Raises:
            ConfigError: There is no such part, or it cannot be right.
        """
        kinds = field_types(RunConfig)
        require(part in kinds, part, given, f"there is no such field; known fields are {', '.join(kinds)}")
        return _build(kinds[part], given, part)

    def to_dict(self) -> dict[str, Any]:
        """Every field as nested plain values; `from_dict` gives the same run back."""
        return dataclasses.asdict(self)


def _build(kind: Any, given: object, path: str) -> Any:
    require(isinstance(given, Mapping), path or "config", given, "use an object of named fields")
    assert isinstance(given, Mapping)
    hints = field_types(kind)
    values: dict[str, Any] = {}
    for name, value in given.items():
        where = f"{path}.{name}" if path else str(name)
        require(name in hints, where, value, f"there is no such field; known fields are {', '.join(hints)}")
        if hints[name] is CellConfig:
            values[name] = cell_config(value, where)
        elif dataclasses.is_dataclass(hints[name]):
            values[name] = _build(hints[name], value, where)
        else:
            values[name] = check_scalar(kind, name, value)
    return kind(**values)


def cell_config(value: object, where: str) -> CellConfig:
    """A cell's configuration from its name alone, or from an object with its name and options.

    Raises:
        ConfigError: There is no such cell, or an option of it cannot be right.
    """
    given = {"name": value} if isinstance(value, str) else value
    require(isinstance(given, Mapping), where, value, "use a cell's name, or an object with its name and options")
    assert isinstance(given, Mapping)
    name = given.get("name", "rotrnn")
    known = isinstance(name, str) and name in CELLS
    require(known, f"{where}.name", name, f"known cells are {', '.join(sorted(CELLS))}")
    cell: CellConfig = _build(CELLS[name], given, where)
    return cell
