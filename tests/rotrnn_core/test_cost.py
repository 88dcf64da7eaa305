"""Are parameters, state and operations what the closed formulas say, and does matching bring cells together?"""

import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from rotrnn_core.catalogue import TASKS
from rotrnn_core.cells import (
    CELLS,
    CellConfig,
    GRUConfig,
    LRUConfig,
    RotRNNConfig,
    S4Config,
    S4DConfig,
    S5Config,
    TransformerConfig,
)
from rotrnn_core.config import ConfigError, ModelConfig
from rotrnn_core.cost import Match, blocks_cost, cell_cost, cost, matched
from rotrnn_core.layers import Cell, DiagonalCell
from rotrnn_core.layers.channels import ChannelCell
from rotrnn_core.model import build_cell, network_for

VARIANTS: list[CellConfig] = [
    RotRNNConfig(n_heads=2),
    RotRNNConfig(n_heads=8, first_step="authors", init="ring"),
    LRUConfig(),
    LRUConfig(normaliser="tied"),
    S5Config(n_blocks=2),
    S5Config(conjugates="free"),
    S4DConfig(),
    S4DConfig(init="lin", discretisation="bilinear"),
    S4Config(),
    GRUConfig(),
    TransformerConfig(n_heads=2),
]
EVERY_MODEL = [
    ModelConfig(cell=cell, d_model=8, d_state=d_state, n_layers=layers, bidirectional=both, gate=gate)  # type: ignore[arg-type]
    for cell, (d_state, layers), both, gate in itertools.product(
        VARIANTS, [(16, 1), (48, 2)], [False, True], ["full_glu", "half_glu1", "half_glu2", "gelu"]
    )
]


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_every_variant_of_every_cell_is_held() -> None:
    assert {type(cell) for cell in VARIANTS} == set(CELLS.values())


@pytest.mark.parametrize("task", TASKS)
def test_the_parameters_of_every_network_are_those_of_the_formula(task: str) -> None:
    models = EVERY_MODEL if task == "listops-short" else EVERY_MODEL[:: len(EVERY_MODEL) // 5]
    for model in models:
        network = network_for(model, TASKS[task], generator())
        assert cost(model, TASKS[task]).parameters == sum(parameter.numel() for parameter in network.parameters()), (
            model
        )


@pytest.mark.parametrize("cell", VARIANTS, ids=lambda cell: cell.label)
def test_the_state_is_what_a_step_hands_on(cell: CellConfig) -> None:
    for both in (False, True):
        model = ModelConfig(cell=cell, d_model=8, d_state=32, bidirectional=both)
        layer, found = build_cell(model), cell_cost(model, 1).state_size
        if cell.has_state:
            assert layer.states(torch.zeros(1, 2, 8)).shape[-1] == found
        else:
            assert (layer.n_heads, found) == (None, 0)


class Counter(TorchDispatchMode):
    """Counts the multiplications and additions that run: those of matrix products, and apart from them the others."""

    MATRIX = frozenset({"mm", "addmm", "bmm", "baddbmm"})
    SINGLE = frozenset({"mul", "add", "sub", "rsub"})

    def __init__(self) -> None:
        super().__init__()
        self.products = 0
        self.others = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__.rstrip("_")
        if name in self.MATRIX:
            left = args[-2]
            self.products += 2 * out.numel() * left.shape[-1]
        elif name in self.SINGLE:
            self.others += out.numel()
        elif name == "sum":
            self.others += args[0].numel() - out.numel()
        return out


@torch.no_grad()
def counted(cell: Cell, batch: int, time: int) -> Counter:
    """The operations of whole sequences."""
    u = torch.zeros(batch, time, cell.d_model)
    with sdpa_kernel(SDPBackend.MATH), Counter() as counter:
        cell(u)
    return counter


@torch.no_grad()
def counted_step(cell: Cell, batch: int) -> int:
    """The operations of one step."""
    u, h = torch.zeros(batch, cell.d_model), torch.zeros(batch, cell.d_state)
    with Counter() as counter:
        cell.step(u, h)
    return counter.products + counter.others


@pytest.mark.parametrize("d_state", [16, 48])
@pytest.mark.parametrize("cell", VARIANTS, ids=lambda cell: cell.label)
def test_the_operations_of_a_cell_are_those_of_the_formula(cell: CellConfig, d_state: int) -> None:
    for both in (False, True):
        model = ModelConfig(cell=cell, d_model=8, d_state=d_state, bidirectional=both)
        layer = build_cell(model, generator())
        layer.backend = "reference"
        if isinstance(layer, DiagonalCell):
            # What one more step of one more sequence takes: all that is done once per call falls out.
            counts = [counted(layer, *sizes) for sizes in ((2, 4), (1, 4), (2, 3), (1, 3))]
            each = [counter.products + counter.others for counter in counts]
            found = each[0] - each[1] - each[2] + each[3]
        elif isinstance(layer, ChannelCell):
            one = build_cell(replace(model, bidirectional=False), generator())
            one.backend = "reference"
            found = layer.directions * (counted_step(one, 2) - counted_step(one, 1) - 8) + 8
        else:
            found = (counted(layer, 2, 4).products - counted(layer, 1, 4).products) // 4
        assert cell_cost(model, 4).flops_per_token == found


def test_operations_of_a_network_are_those_of_its_layers_and_of_frames() -> None:
    model = ModelConfig(cell=LRUConfig(), d_model=8, d_state=16, n_layers=3, gate="full_glu")
    layer = cell_cost(model, 1).flops_per_token + 2 * 2 * 8 * 8
    for task in TASKS.values():
        assert cost(model, task).flops_per_token == 3 * layer + 2 * task.channels * 8


@pytest.mark.parametrize("match", ["parameters", "flops"])
@pytest.mark.parametrize("cell", VARIANTS, ids=lambda cell: cell.label)
def test_a_matched_cell_is_the_nearest_that_can_be_built(cell: CellConfig, match: Match) -> None:
    to = ModelConfig(cell=RotRNNConfig(n_heads=4), d_model=16, d_state=512, n_layers=2)
    model = replace(to, cell=cell, d_state=96)
    found = matched(model, to, match, 9)

    def off(d_state: int) -> int:
        costs = [blocks_cost(of, 9) for of in (replace(model, d_state=d_state), to)]
        ours, theirs = (of.parameters if match == "parameters" else of.flops_per_token for of in costs)
        return abs(ours - theirs)

    unit = cell.state_unit(16)
    assert found == replace(model, d_state=found.d_state)
    assert found.d_state % unit == 0
    for other in (found.d_state - unit, found.d_state + unit):
        assert other < 1 or off(found.d_state) <= off(other)


@given(st.sampled_from(VARIANTS), st.integers(1, 8), st.integers(1, 12), st.sampled_from(["parameters", "flops"]))
@settings(max_examples=60, deadline=None)
def test_a_model_matched_to_itself_stays_as_it_is(cell: CellConfig, width: int, units: int, match: Match) -> None:
    d_model = 4 * width
    model = ModelConfig(cell=cell, d_model=d_model, d_state=units * cell.state_unit(d_model))
    assert matched(model, model, match, 50) == model
    assert matched(model, ModelConfig(), "d_state", 50) == model


def test_what_cannot_come_near_is_refused_with_both_numbers() -> None:
    to = ModelConfig(cell=RotRNNConfig(n_heads=2), d_model=64, d_state=4)
    wanted = blocks_cost(to, 9).parameters
    with pytest.raises(ConfigError, match=rf"the {wanted} parameters of RotRNN is \d+, with d_state 1"):
        matched(replace(to, cell=TransformerConfig()), to, "parameters", 9)
