"""Is every parameter trained by the rule of its module, at the rate of its step?"""

import math
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch import nn

from rotrnn_core.config import RunConfig
from rotrnn_core.layers import LRU, DiagonalCell, RotRNN
from rotrnn_core.model import Block, Network
from rotrnn_core.training.adamw import AdamW, Group
from rotrnn_core.training.optimiser import learning_rate, make_optimiser, set_rates

WAYS = ["standard", "B_and_C_decay", "B_fast_and_C_decay", "no_BC_decay"]


def made(config: RunConfig) -> tuple[Network, AdamW]:
    network = Network(config.model, tokens=18, classes=10)
    return network, make_optimiser(network, config.training)


def rule(optimiser: AdamW, parameter: nn.Parameter) -> tuple[bool, float]:
    """Whether the parameter follows the recurrence rate, and its weight decay."""
    (group,) = [g for g in optimiser.groups if any(parameter is p for p in g.parameters)]
    return group.recurrence_rate, group.weight_decay


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cell", ["rotrnn", "lru"])
def test_every_parameter_is_in_exactly_one_group(small_run: Callable[..., RunConfig], cell: str, way: str) -> None:
    network, optimiser = made(small_run(model={"cell": cell, "d_state": 16}, training={"parameter_groups": way}))
    grouped = [id(parameter) for group in optimiser.groups for parameter in group.parameters]
    assert sorted(grouped) == sorted(id(parameter) for parameter in network.parameters())


@pytest.mark.parametrize(
    ("way", "of_B", "of_C"),
    [
        ("standard", (True, 0.0), (False, 0.05)),
        ("B_and_C_decay", (True, 0.05), (False, 0.05)),
        ("B_fast_and_C_decay", (False, 0.05), (False, 0.05)),
        ("no_BC_decay", (True, 0.0), (True, 0.0)),
    ],
)
@pytest.mark.parametrize("cell", ["rotrnn", "lru"])
def test_each_part_of_a_cell_is_trained_by_its_rule(
    small_run: Callable[..., RunConfig], cell: str, way: str, of_B: tuple[bool, float], of_C: tuple[bool, float]
) -> None:
    network, optimiser = made(small_run(model={"cell": cell, "d_state": 16}, training={"parameter_groups": way}))
    block = network.blocks[0]
    assert isinstance(block, Block)
    assert isinstance(block.cell, DiagonalCell)
    for parameter in block.cell.recurrence_parameters():
        assert rule(optimiser, parameter) == (True, 0.0)
    for parameter in block.cell.input_parameters():
        assert rule(optimiser, parameter) == of_B
    for parameter in block.cell.output_parameters():
        assert rule(optimiser, parameter) == of_C
    for parameter in (*block.norm.parameters(), block.gate.W2.bias, network.encoder.bias, network.classifier.bias):
        assert rule(optimiser, parameter) == (False, 0.0)
    for parameter in (block.gate.W2.weight, network.encoder.weight, network.classifier.weight):
        assert rule(optimiser, parameter) == (False, 0.05)


@pytest.mark.parametrize(
    "cell", [RotRNN(4, 8, 2), RotRNN(4, 8, 2, init="ring"), LRU(4, 8), LRU(4, 8, normaliser="tied")]
)
def test_a_cell_names_each_of_its_parameters_once(cell: DiagonalCell) -> None:
    named = [*cell.recurrence_parameters(), *cell.input_parameters(), *cell.output_parameters()]
    assert sorted(map(id, named)) == sorted(map(id, cell.parameters()))


def test_rates_rise_along_a_line_and_fall_along_a_cosine(small_run: Callable[..., RunConfig]) -> None:
    settings = {"steps": 100, "warmup_steps": 10, "learning_rate": 1.0, "final_learning_rate": 0.1}
    training = small_run(training=settings).training
    rates = [learning_rate(step, 1.0, training) for step in range(1, 101)]
    assert rates[4] == pytest.approx(0.1 + 0.9 * 0.5)
    assert rates[9] == 1.0
    assert rates[54] == pytest.approx(0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi / 2)))
    assert rates[99] == pytest.approx(0.1)
    assert rates[9:] == sorted(rates[9:], reverse=True)


def test_groups_follow_their_own_rate(small_run: Callable[..., RunConfig]) -> None:
    config = small_run(training={"learning_rate": 0.02, "recurrence_learning_rate": 0.001, "warmup_steps": 0})
    _, optimiser = made(config)
    general, recurrence = set_rates(optimiser, 1, config.training)
    assert general > recurrence > 0
    for group in optimiser.groups:
        assert group.rate == (recurrence if group.recurrence_rate else general)


def test_adamw_moves_as_torchs_own_also_from_a_restored_state() -> None:
    def parameters() -> list[nn.Parameter]:
        return [nn.Parameter(torch.full((3, 2), 0.5)), nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(1))]

    ours, theirs, restored = parameters(), parameters(), parameters()
    optimiser = AdamW([Group(ours[:1], True, 0.1, rate=0.02), Group(ours[1:], False, 0.0, rate=0.3)])
    yardstick = torch.optim.AdamW(
        [
            {"params": theirs[:1], "lr": 0.02, "weight_decay": 0.1},
            {"params": theirs[1:], "lr": 0.3, "weight_decay": 0.0},
        ]
    )
    for step in range(1, 6):
        for one, other in zip(ours[:2], theirs[:2], strict=True):
            one.grad = torch.sin(step * torch.arange(float(one.numel()))).view_as(one)
            other.grad = one.grad.clone()
        if step == 3:
            with torch.no_grad():
                for one, other in zip(ours, restored, strict=True):
                    other.copy_(one)
            second = AdamW([Group(restored[:1], True, 0.1, rate=0.02), Group(restored[1:], False, 0.0, rate=0.3)])
            second.load_state_dict(optimiser.state_dict())
        optimiser.step()
        yardstick.step()
        if step >= 3:
            for one, other in zip(ours[:2], restored[:2], strict=True):
                other.grad = one.grad
            second.step()
    for one, other, third in zip(ours, theirs, restored, strict=True):
        torch.testing.assert_close(one, other)
        assert torch.equal(one, third)
    optimiser.zero_grad()
    assert all(parameter.grad is None for parameter in ours)


def test_training_imports_no_compiler() -> None:
    lines = (
        "import sys, torch, rotrnn_core.training\n"
        "from rotrnn_core.training.adamw import AdamW, Group\n"
        "parameter = torch.nn.Parameter(torch.ones(2))\n"
        "parameter.grad = torch.ones(2)\n"
        "AdamW([Group([parameter], False, 0.0, rate=0.1)]).step()\n"
        "sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", lines], check=False, timeout=60).returncode == 0
