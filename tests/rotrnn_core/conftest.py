"""What do the tests of the core share? One small data set on disk, and runs of seconds on it."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from rotrnn_core.config import RunConfig
from rotrnn_core.layers import Cell

Section = dict[str, object]


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the small data set is made by whoever asks first."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="session")
def small_run() -> Callable[..., RunConfig]:
    """Makes a run of two layers of width 8 and six steps with dropout; keywords update its sections."""

    def make(**changes: Section) -> RunConfig:
        sections: dict[str, Section] = {
            "task": {"train_size": 40, "validation_size": 10, "test_size": 10},
            "model": {"cell": {"name": "rotrnn", "n_heads": 2}, "d_model": 8, "d_state": 8, "dropout": 0.2},
            "training": {
                "steps": 6,
                "batch_size": 4,
                "warmup_steps": 2,
                "log_every": 1,
                "evaluate_every": 3,
                "checkpoint_every": 2,
                "device": "cpu",
            },
            "probe": {"every": 2, "batch_size": 3, "positions": 5},
        }
        for name, section in changes.items():
            sections[name] |= section
        return RunConfig.from_dict(sections)

    return make


@pytest.fixture(scope="session")
def has_gradients_of() -> Callable[..., None]:
    """Holds the gradients of a cell, by every parameter and by its input, against those of outputs found otherwise."""

    def hold(cell: Cell, u: Tensor, outputs: Tensor, *, rtol: float, atol: float) -> None:
        names, parameters = zip(*cell.named_parameters(), strict=True)
        expected = torch.autograd.grad(outputs.square().sum(), [*parameters, u])
        found = torch.autograd.grad(cell(u).square().sum(), [*parameters, u])
        for name, a, b in zip([*names, "u"], found, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=rtol, atol=atol, msg=lambda text, name=name: f"{name}: {text}")

    return hold
