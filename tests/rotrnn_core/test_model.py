"""Does the network do what its drawing says, and is padding without effect?"""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from rotrnn_core.config import ModelConfig, RunConfig
from rotrnn_core.layers import Gate, MaskedBatchNorm
from rotrnn_core.model import Block, Network, valid_steps
from rotrnn_core.ops.batch_norm import masked_batch_norm
from rotrnn_core.ops.gated_unit import Value, gated_unit

TOKENS, CLASSES = 6, 3


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def config(**model: object) -> ModelConfig:
    sizes: dict[str, object] = {"cell": {"name": "rotrnn", "n_heads": 2}, "d_model": 6, "d_state": 8}
    return RunConfig.from_dict({"model": sizes | model}).model


def network(**model: object) -> Network:
    return Network(config(**model), tokens=TOKENS, classes=CLASSES, generator=generator()).double()


def some_tokens(time: int = 7) -> tuple[Tensor, Tensor]:
    lengths = torch.tensor([time, 3, 1])
    return torch.randint(0, TOKENS, (3, time), generator=generator(2)), lengths


def test_batch_norm_is_torchs_where_nothing_is_padded() -> None:
    ours, theirs = MaskedBatchNorm(4).double(), nn.BatchNorm1d(4).double()
    with torch.no_grad():
        for parameter in ("weight", "bias"):
            getattr(theirs, parameter).copy_(getattr(ours, parameter).uniform_(0.5, 2.0, generator=generator()))
    for seed in range(3):
        x = 3 + 2 * torch.randn(5, 6, 4, generator=generator(seed), dtype=torch.float64)
        torch.testing.assert_close(ours(x).view(-1, 4), theirs(x.view(-1, 4)), rtol=0, atol=1e-12)
    torch.testing.assert_close(ours.running_mean, theirs.running_mean)
    torch.testing.assert_close(ours.running_var, theirs.running_var)
    torch.testing.assert_close(ours.eval()(x).view(-1, 4), theirs.eval()(x.view(-1, 4)), rtol=0, atol=1e-12)


def test_batch_norm_leaves_padding_out_of_its_statistics() -> None:
    x = torch.randn(2, 5, 3, generator=generator(), dtype=torch.float64)
    valid = torch.tensor([[True] * 5, [True, True, False, False, False]])
    masked, alone = MaskedBatchNorm(3).double(), MaskedBatchNorm(3).double()
    wanted = alone(x[valid].unsqueeze(0)).squeeze(0)
    torch.testing.assert_close(masked(x, valid)[valid], wanted, rtol=0, atol=1e-12)
    torch.testing.assert_close(masked.running_var, alone.running_var)


def test_batch_norm_is_the_same_whether_it_is_told_that_nothing_is_padded() -> None:
    x = 3 + torch.randn(2, 5, 3, generator=generator(), dtype=torch.float64)
    weights = torch.randn(2, 5, 3, generator=generator(1), dtype=torch.float64)
    found = []
    for valid in (None, torch.ones(2, 5, dtype=torch.bool)):
        norm, u = MaskedBatchNorm(3).double(), x.clone().requires_grad_()
        out = norm(u, valid)
        gradients = torch.autograd.grad((out * weights).sum(), [u, norm.weight, norm.bias])
        found.append([out, *gradients, norm.running_mean, norm.running_var])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_one_step_alone_leaves_finite_running_statistics() -> None:
    norm = MaskedBatchNorm(3)
    norm(torch.randn(1, 1, 3, generator=generator()))
    assert norm.running_var.isfinite().all()


def test_batch_norms_gradient_is_right() -> None:
    rows = torch.randn(6, 3, generator=generator(), dtype=torch.float64, requires_grad=True)
    share = torch.tensor([0.25, 0.25, 0.25, 0.25, 0.0, 0.0], dtype=torch.float64)
    weight, bias = (torch.rand(3, generator=generator(seed), dtype=torch.float64).requires_grad_() for seed in (1, 2))
    assert torch.autograd.gradcheck(lambda x, w, b: masked_batch_norm(x, share, w, b, 1e-5)[0], (rows, weight, bias))


@pytest.mark.parametrize("kind", ["full_glu", "half_glu1", "half_glu2", "gelu"])
def test_each_gate_is_its_formula(kind: str) -> None:
    gate = Gate(5, kind, generator=generator()).double()  # type: ignore[arg-type]
    y = torch.randn(2, 3, 5, generator=generator(1), dtype=torch.float64)
    active = functional.gelu(y, approximate="tanh")
    opening = torch.sigmoid(gate.W2(active)) if kind != "gelu" else None
    wanted = {
        "full_glu": lambda: gate.W1(active) * opening,
        "half_glu1": lambda: active * opening,
        "half_glu2": lambda: y * opening,
        "gelu": lambda: active,
    }[kind]()
    torch.testing.assert_close(gate(y), wanted)


@pytest.mark.parametrize("value", ["mapped", "active", "input"])
@pytest.mark.parametrize("masked", [False, True])
def test_a_gated_units_gradient_is_right(value: Value, masked: bool) -> None:
    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=chance, dtype=torch.float64).requires_grad_()

    chance = generator(4)
    y, W1, b1, W2, b2 = normal(2, 3, 4), normal(4, 4), normal(4), normal(4, 4), normal(4)
    kept = torch.tensor([[1.25, 0.0, 1.25, 1.25], [0.0, 1.25, 1.25, 1.25]], dtype=torch.float64).unsqueeze(1)
    masks = (kept, kept.flip(0)) if masked else (None, None)
    mapping = (W1, b1) if value == "mapped" else None
    inputs = (y, W2, b2, *(mapping or ()))
    assert torch.autograd.gradcheck(lambda *_: gated_unit(y, (W2, b2), value, mapping, masks), inputs)


@pytest.mark.parametrize("kind", ["full_glu", "half_glu1", "half_glu2", "gelu"])
def test_every_gate_drops_channels_of_its_output_for_all_of_time(kind: str) -> None:
    gate = Gate(40, kind, dropout=0.5, generator=generator())  # type: ignore[arg-type]
    dropped = gate(torch.randn(8, 6, 40, generator=generator(1)), generator(2)).eq(0)
    assert dropped.any()
    assert dropped.eq(dropped[:, :1]).all()


def test_under_autocast_the_residual_stream_keeps_its_precision() -> None:
    block = Block(config(), generator())
    x = torch.randn(2, 4, 6, generator=generator(3))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = block(x)
        branch = block.gate(block.cell(block.norm(x)))
    assert out.dtype == torch.float32
    assert branch.dtype == torch.bfloat16
    out.sum().backward()
    assert all(parameter.grad is not None for parameter in block.parameters())


def test_dropout_shares_one_mask_over_time_and_keeps_the_mean() -> None:
    gate = Gate(200, "gelu", dropout=0.25)
    y = torch.full((50, 4, 200), 2.0)
    kept = gate(y, generator()) / functional.gelu(y, approximate="tanh")
    assert kept.eq(kept[:, :1]).all()
    standard_error = (0.25 * 0.75 / kept[:, 0].numel()) ** 0.5
    assert abs(kept.mean() - 1) < 4 * standard_error / 0.75
    assert abs(kept.eq(0).float().mean() - 0.25) < 4 * standard_error
    assert gate.eval()(y).ne(0).all()


def test_a_block_is_norm_cell_gate_and_residual() -> None:
    block = Block(config(), generator()).double()
    x = torch.randn(2, 4, 6, generator=generator(3), dtype=torch.float64)
    torch.testing.assert_close(block(x), x + block.gate(block.cell(block.norm(x))))


@pytest.mark.parametrize("norm", ["batch", "layer"])
@pytest.mark.parametrize("cell", ["rotrnn", "lru"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_padding_changes_no_prediction(cell: str, norm: str, bidirectional: bool) -> None:
    chosen: object = {"name": cell, "n_heads": 2} if cell == "rotrnn" else cell
    net = network(cell=chosen, norm=norm, bidirectional=bidirectional, n_layers=2).eval()
    tokens, lengths = some_tokens()
    together = net(tokens, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone = net(tokens[row : row + 1, :length])
        torch.testing.assert_close(together[row : row + 1], alone, rtol=0, atol=1e-12)


def test_what_stands_in_the_padding_changes_neither_loss_nor_gradient() -> None:
    tokens, lengths = some_tokens()
    changed = torch.where(valid_steps(tokens, lengths), tokens, (tokens + 1) % TOKENS)  # type: ignore[arg-type]
    found = []
    for given in (tokens, changed):
        net = network(n_layers=2)
        loss = functional.cross_entropy(net(given, lengths), torch.tensor([0, 1, 2]))
        found.append([loss.detach(), *torch.autograd.grad(loss, list(net.parameters()))])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-13)


def test_the_network_gives_the_states_that_its_cells_have() -> None:
    net = network(n_layers=2).eval()
    tokens, lengths = some_tokens()
    states = net.states(tokens, lengths)
    assert [layer.shape for layer in states] == [(3, 7, 8), (3, 7, 8)]
    block = net.blocks[0]
    assert isinstance(block, Block)
    x = net.encoder(functional.one_hot(tokens, TOKENS).double())
    torch.testing.assert_close(states[0], block.cell.states(block.norm(x), lengths))


def test_the_same_generator_gives_the_same_network_and_leaves_torchs_own_alone() -> None:
    before = torch.get_rng_state()
    one, other = network(dropout=0.5), network(dropout=0.5)
    for (name, value), same in zip(one.state_dict().items(), other.state_dict().values(), strict=True):
        assert torch.equal(value, same), name
    tokens, lengths = some_tokens()
    assert torch.equal(one(tokens, lengths, generator=generator(9)), other(tokens, lengths, generator=generator(9)))
    assert torch.equal(torch.get_rng_state(), before)
