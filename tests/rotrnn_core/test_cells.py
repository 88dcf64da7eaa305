"""Is a cell one entry, and does every layer keep the promises of a cell?"""

import dataclasses
import inspect

import pytest
import torch
from torch import Tensor

from rotrnn_core.cells import CELLS, CellConfig, GRUConfig, S4Config, S4DConfig, S5Config, TransformerConfig
from rotrnn_core.config import ConfigError, ModelConfig, RunConfig
from rotrnn_core.layers import LAYERS, Cell
from rotrnn_core.layers.channels import ChannelCell
from rotrnn_core.model import Network, build_cell

CLOSE = {"rtol": 0.0, "atol": 1e-11}
D_MODEL = 4
VARIANTS: dict[str, tuple[CellConfig, int]] = {
    "s5": (S5Config(n_blocks=2), 12),
    "s5-free": (S5Config(conjugates="free"), 12),
    "s4d-legs": (S4DConfig(), 48),
    "s4d-lin-bilinear": (S4DConfig(init="lin", discretisation="bilinear"), 48),
    "s4": (S4Config(), 48),
    "gru": (GRUConfig(), 7),
    "transformer": (TransformerConfig(n_heads=2), 10),
}
"""Each new layer with its d_state; RotRNN and LRU have laws of their own."""
WITH_STATES = [label for label in VARIANTS if label != "transformer"]


def build(label: str, *, bidirectional: bool = False, seed: int = 0) -> Cell:
    config, d_state = VARIANTS[label]
    model = ModelConfig(cell=config, d_model=D_MODEL, d_state=d_state, bidirectional=bidirectional)
    return build_cell(model, torch.Generator().manual_seed(seed)).double()


def sequence(time: int, *, batch: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(time)
    return torch.randn(batch, time, D_MODEL, generator=generator, dtype=torch.float64)


def step_by_step(cell: Cell, u: Tensor, h: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Outputs and states of a cell that reads one step at a time."""
    outputs, states = [], []
    for now in u.unbind(1):
        y, h = cell.step(now, h)
        outputs.append(y)
        states.append(h)
    return torch.stack(outputs, dim=1), torch.stack(states, dim=1)


@pytest.mark.parametrize("name", CELLS)
def test_one_entry_makes_a_cell_known_with_words_and_a_layer(name: str) -> None:
    kind = CELLS[name]
    assert kind.name == name
    assert kind.title
    assert kind.summary.endswith(".")
    keywords = set(inspect.signature(LAYERS[name]).parameters)
    assert keywords == {"d_model", "d_state", "bidirectional", "generator", *kind().options()}
    sizes = {"d_model": 8, "d_state": 16}
    run = RunConfig.from_dict({"model": {"cell": name, **sizes}})
    assert run.model.cell == kind()
    assert RunConfig.from_dict(run.to_dict()) == run
    assert isinstance(build_cell(run.model), LAYERS[name])


def test_every_entry_has_a_layer_and_every_layer_an_entry() -> None:
    assert CELLS.keys() == LAYERS.keys()


def test_labels_tell_variants_apart() -> None:
    assert {label: config.label for label, (config, _) in VARIANTS.items()} == {label: label for label in VARIANTS}


@pytest.mark.parametrize(
    ("cell", "d_state", "remedy"),
    [
        ({"name": "s5", "n_blocks": 3}, 16, "divisible by 2 * n_blocks = 6"),
        ({"name": "s5", "n_blocks": 0}, 16, "at least 1 block"),
        ({"name": "s5", "dt_min": 0}, 16, "positive step size"),
        ({"name": "s4d", "dt_min": 0.2}, 16, "at most dt_max, which is 0.1"),
        ({"name": "s4d", "discretisation": "euler"}, 16, "use one of zoh, bilinear"),
        ({"name": "s4"}, 24, "multiple of 2 * d_model = 16"),
        ({"name": "transformer", "n_heads": 3}, 16, "divisible by n_heads, which is 3"),
        ({"name": "transformer", "n_heads": 0}, 16, "at least 1 head"),
        ({"name": "gru", "units": 4}, 16, "there is no such field"),
    ],
)
def test_what_cannot_be_built_is_refused_with_the_remedy(cell: dict[str, object], d_state: int, remedy: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        RunConfig.from_dict({"model": {"cell": cell, "d_model": 8, "d_state": d_state}})
    assert remedy in str(refusal.value)


@pytest.mark.parametrize("time", [1, 2, 3, 31])
@pytest.mark.parametrize("label", WITH_STATES)
def test_whole_sequences_and_single_steps_give_the_same(label: str, time: int) -> None:
    cell = build(label)
    u = sequence(time)
    outputs, states = step_by_step(cell, u)
    torch.testing.assert_close(cell(u), outputs, **CLOSE)
    torch.testing.assert_close(cell.states(u), states, **CLOSE)


@pytest.mark.parametrize("label", WITH_STATES)
def test_a_cut_sequence_gives_what_the_whole_gives(label: str) -> None:
    cell = build(label)
    u = sequence(17)
    first = cell.states(u[:, :6])
    outputs, states = step_by_step(cell, u[:, 6:], first[:, -1])
    torch.testing.assert_close(cell(u)[:, 6:], outputs, **CLOSE)
    torch.testing.assert_close(cell.states(u)[:, 6:], states, **CLOSE)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("label", VARIANTS)
def test_padding_changes_nothing_and_stays_zero(label: str, bidirectional: bool) -> None:
    cell = build(label, bidirectional=bidirectional)
    u, lengths = sequence(13), torch.tensor([13, 5, 1])
    padded = cell(u, lengths)
    for row, length in enumerate(lengths):
        alone = u[row : row + 1, :length]
        torch.testing.assert_close(padded[row : row + 1, :length], cell(alone), **CLOSE)
        assert not padded[row, length:].any()
        if cell.n_heads is not None:
            states = cell.states(u, lengths)
            torch.testing.assert_close(states[row : row + 1, :length], cell.states(alone), **CLOSE)
            assert not states[row, length:].any()


@pytest.mark.parametrize("label", ["s5", "s4d-legs", "s4"])
def test_reading_backwards_swaps_the_directions(label: str) -> None:
    cell = build(label, bidirectional=True)
    u = sequence(9)
    assert cell.n_heads is not None
    states = cell.states(u).view(3, 9, cell.n_heads, 2, 2)
    turned = cell.states(u.flip(1)).view(3, 9, cell.n_heads, 2, 2)
    torch.testing.assert_close(turned.flip(1).flip(3), states, **CLOSE)


@pytest.mark.parametrize("label", ["s4d-legs", "s4d-lin-bilinear", "s4"])
def test_each_direction_of_a_channel_is_read_by_its_own_c(label: str) -> None:
    cell = build(label, bidirectional=True)
    assert isinstance(cell, ChannelCell)
    u = sequence(9)
    h = cell.states(u).view(3, 9, D_MODEL, cell.n, 2, 2)
    C_re, C_im = (C.view(D_MODEL, 2, cell.n).mT for C in (cell.C_re, cell.C_im))
    outputs = 2 * (C_re * h[..., 0] - C_im * h[..., 1]).sum((-1, -2)) + cell.D * u
    torch.testing.assert_close(cell(u), outputs, **CLOSE)


@pytest.mark.parametrize("label", VARIANTS)
def test_a_cell_of_one_direction_never_looks_ahead(label: str) -> None:
    cell = build(label)
    u = sequence(8)
    changed = torch.cat([u[:, :5], sequence(3)], dim=1)
    torch.testing.assert_close(cell(changed)[:, :5], cell(u)[:, :5], **CLOSE)
    both = build(label, bidirectional=True)
    assert (both(changed)[:, :5] - both(u)[:, :5]).abs().max() > 1e-3


@pytest.mark.parametrize("label", VARIANTS)
def test_a_bidirectional_cell_refuses_single_steps(label: str) -> None:
    with pytest.raises(ValueError, match="step by step"):
        build(label, bidirectional=True).step(sequence(1)[:, 0])


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("label", VARIANTS)
def test_every_parameter_gets_a_gradient(label: str, bidirectional: bool) -> None:
    cell = build(label, bidirectional=bidirectional)
    cell(sequence(7)).square().sum().backward()
    for name, parameter in cell.named_parameters():
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()
        # Not in every element: the bias on the keys of an attention moves all scores alike.
        assert parameter.grad.any(), name


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("label", VARIANTS)
def test_the_parameter_count_is_the_one_stated(label: str, bidirectional: bool) -> None:
    cell = build(label, bidirectional=bidirectional)
    d, s, directions = D_MODEL, cell.d_state, cell.directions
    stated = {
        "s5": s * (1 + d * (1 + directions)) + s // 2 + d,
        "s4d": s * (2 + directions) + 2 * d,
        "s4": s * (3 + directions) + 2 * d,
        "gru": directions * 3 * s * (d + s + 2) + (directions * s + 1) * d,
        "transformer": 4 * d * (d + 1) + 4 * d + s * (2 * d + 1) + d,
    }
    assert sum(parameter.numel() for parameter in cell.parameters()) == stated[label.split("-")[0]]


@pytest.mark.parametrize("label", VARIANTS)
def test_initial_values_follow_the_generator_and_touch_no_other(label: str) -> None:
    before = torch.get_rng_state()
    one, same, other = build(label), build(label), build(label, seed=1)
    assert torch.equal(torch.get_rng_state(), before)
    pairs = list(zip(one.parameters(), same.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b in pairs)
    assert any(not torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("label", VARIANTS)
def test_a_network_of_any_cell_classifies_and_trains(label: str) -> None:
    config, d_state = VARIANTS[label]
    model = ModelConfig(cell=config, d_model=D_MODEL, d_state=d_state, n_layers=2, bidirectional=True)
    network = Network(model, tokens=5, classes=3, generator=torch.Generator().manual_seed(0))
    tokens = torch.arange(24).view(2, 12) % 5
    logits = network(tokens, torch.tensor([12, 7]))
    assert logits.shape == (2, 3)
    logits.square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())


def test_options_are_all_fields_but_the_name() -> None:
    for kind in CELLS.values():
        assert {"name", *kind().options()} == {field.name for field in dataclasses.fields(kind)}
