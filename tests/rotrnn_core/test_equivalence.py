"""Does the paper's theorem hold: is every LRU a RotRNN, and every RotRNN an LRU?

Both sides are checked against the two papers' equations as loops, in complex numbers for LRU and with the orthogonal
matrix A formed for RotRNN, so that nothing rests on what the two layers share in code.
"""

import json
import math

import pytest
import torch
from torch import Tensor, nn

from rotrnn_core.cells import LRUConfig, RotRNNConfig, S5Config
from rotrnn_core.config import ModelConfig, TrainingConfig
from rotrnn_core.equivalence import (
    Difference,
    by_equations,
    cell_from,
    demonstrate,
    lru_from_rotrnn,
    network_from,
    rotrnn_from_lru,
    states_in_rotrnn_basis,
)
from rotrnn_core.equivalence.__main__ import main
from rotrnn_core.layers import LRU, S5, RotRNN
from rotrnn_core.model import Network
from rotrnn_core.training.optimiser import make_optimiser

CLOSE = {"rtol": 0.0, "atol": 1e-11}
D_MODEL, D_STATE, TIME = 3, 8, 40


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def sequence() -> Tensor:
    return torch.randn(2, TIME, D_MODEL, generator=generator(9), dtype=torch.float64)


def an_lru(**options: object) -> LRU:
    """An LRU whose learned normaliser is anywhere but at its initial value."""
    lru = LRU(D_MODEL, D_STATE, generator=generator(), **options).double()  # type: ignore[arg-type]
    if lru.normaliser == "learned":
        nn.init.normal_(lru.gamma_log, generator=generator(1))
    return lru


def a_rotrnn(n_heads: int, **options: object) -> RotRNN:
    options = {"first_step": "authors", **options}
    return RotRNN(D_MODEL, D_STATE, n_heads, generator=generator(), **options).double()  # type: ignore[arg-type]


def turn(angle: float) -> Tensor:
    """The rotation of the plane by an angle."""
    cos, sin = math.cos(angle), math.sin(angle)
    return torch.tensor([[cos, -sin], [sin, cos]], dtype=torch.float64)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("normaliser", ["learned", "tied"])
def test_an_lru_is_a_rotrnn_with_heads_of_two(normaliser: str, bidirectional: bool) -> None:
    lru, u = an_lru(normaliser=normaliser, bidirectional=bidirectional), sequence()
    outputs, states = by_equations(lru, u)
    rotrnn = rotrnn_from_lru(lru)
    assert (rotrnn.n_heads, rotrnn.d_head) == (D_STATE // 2, 2)
    for found_outputs, found_states in (by_equations(rotrnn, u), (rotrnn(u), rotrnn.states(u))):
        torch.testing.assert_close(found_outputs, outputs, **CLOSE)
        torch.testing.assert_close(found_states, states, **CLOSE)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("init", ["log-uniform", "ring"])
@pytest.mark.parametrize("n_heads", [1, 2, 4])
def test_a_rotrnn_is_an_lru_whose_channels_share_a_decay(n_heads: int, init: str, bidirectional: bool) -> None:
    rotrnn, u = a_rotrnn(n_heads, init=init, bidirectional=bidirectional), sequence()
    if init == "ring":
        nn.init.normal_(rotrnn.theta, std=10, generator=generator(2))
    outputs, states = by_equations(rotrnn, u)
    lru = lru_from_rotrnn(rotrnn)
    for found_outputs, found_states in (by_equations(lru, u), (lru(u), lru.states(u))):
        torch.testing.assert_close(found_outputs, outputs, **CLOSE)
        torch.testing.assert_close(states_in_rotrnn_basis(found_states, rotrnn), states, **CLOSE)
    for shared in (lru.nu_log, lru.gamma_log):
        assert (shared.view(n_heads, -1) == shared.view(n_heads, -1)[:, :1]).all()


def test_with_heads_of_two_the_states_are_the_same_numbers_for_any_rotation() -> None:
    rotrnn = a_rotrnn(D_STATE // 2)
    assert rotrnn.M.abs().max() > 0.1
    torch.testing.assert_close(lru_from_rotrnn(rotrnn).states(sequence()), rotrnn.states(sequence()), **CLOSE)


def test_with_larger_heads_the_norm_of_each_head_is_kept() -> None:
    rotrnn, u = a_rotrnn(2), sequence()
    norms = [
        torch.linalg.vector_norm(cell.states(u).view(2, TIME, 2, -1), dim=-1)
        for cell in (rotrnn, lru_from_rotrnn(rotrnn))
    ]
    torch.testing.assert_close(*norms, **CLOSE)


def test_an_lru_whose_normaliser_is_xi_is_a_plain_rotrnn() -> None:
    rotrnn, u = a_rotrnn(D_STATE // 2), sequence()
    back = rotrnn_from_lru(lru_from_rotrnn(rotrnn))
    plain = a_rotrnn(D_STATE // 2)
    plain.load_state_dict({name: value for name, value in back.state_dict().items() if name != "xi_log"})
    torch.testing.assert_close(plain.input_scale(), back.input_scale(), **CLOSE)
    torch.testing.assert_close(plain(u), rotrnn(u), **CLOSE)
    torch.testing.assert_close(plain.states(u), rotrnn.states(u), **CLOSE)


def test_no_plain_rotrnn_has_a_free_normaliser() -> None:
    back = rotrnn_from_lru(an_lru())
    plain = a_rotrnn(D_STATE // 2)
    plain.load_state_dict({name: value for name, value in back.state_dict().items() if name != "xi_log"})
    assert (plain.states(sequence()) - back.states(sequence())).abs().max() > 0.1


def test_explicit_conjugate_pairs_are_a_rotation_in_another_basis() -> None:
    U = torch.tensor([[1, 1], [-1j, 1j]], dtype=torch.complex128) / math.sqrt(2)
    decay, phase = 0.9, 0.7
    eigenvalue = decay * complex(math.cos(phase), math.sin(phase))
    pair = torch.diag(torch.tensor([eigenvalue, eigenvalue.conjugate()], dtype=torch.complex128))
    torch.testing.assert_close(U @ pair @ U.mH, (decay * turn(phase)).to(U.dtype), **CLOSE)
    b, c = complex(0.3, -1.2), complex(-0.4, 0.8)
    both = U @ torch.tensor([b, b.conjugate()], dtype=torch.complex128)
    torch.testing.assert_close(both, math.sqrt(2) * torch.tensor([b.real, b.imag], dtype=torch.complex128), **CLOSE)
    assert (c * b + (c * b).conjugate()).real == pytest.approx(2 * (c * b).real)


def test_a_phase_of_zero_and_whole_turns_survive() -> None:
    rotrnn, u = a_rotrnn(4, init="ring"), sequence()
    with torch.no_grad():
        rotrnn.theta.copy_(torch.tensor([[0.0], [-0.3], [-4 * math.pi], [7.0]]))
    lru = lru_from_rotrnn(rotrnn)
    assert all(parameter.isfinite().all() for parameter in lru.parameters())
    torch.testing.assert_close(lru(u), rotrnn(u), **CLOSE)


def test_the_exact_first_step_has_no_lru_and_the_refusal_says_so() -> None:
    with pytest.raises(ValueError, match="first_step is 'exact'"):
        lru_from_rotrnn(a_rotrnn(2, first_step="exact"))


def test_other_cells_have_no_equivalent() -> None:
    with pytest.raises(ValueError, match="the cell is S5"):
        cell_from(S5(D_MODEL, D_STATE))


def test_conversion_draws_no_random_numbers_and_shares_no_memory() -> None:
    lru, rotrnn = an_lru(), a_rotrnn(2)
    before = torch.get_rng_state()
    converted = [rotrnn_from_lru(lru), lru_from_rotrnn(rotrnn)]
    assert torch.equal(torch.get_rng_state(), before)
    outputs = [cell(sequence()) for cell in (lru, rotrnn)]
    for cell in converted:
        for parameter in cell.parameters():
            nn.init.zeros_(parameter)
    for cell, output in zip((lru, rotrnn), outputs, strict=True):
        assert torch.equal(cell(sequence()), output)


def trained(config: ModelConfig) -> Network:
    """A network of three layers after a few large steps, in float64, in evaluation mode."""
    network = Network(config, tokens=5, classes=3, generator=generator()).double()
    optimiser = torch.optim.Adam(network.parameters(), lr=0.03)
    tokens = torch.randint(5, (8, 12), generator=generator(1))
    for _ in range(5):
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(tokens), tokens[:, 0] % 3).backward()
        optimiser.step()
    return network.eval()


@pytest.mark.parametrize(
    "cell", [LRUConfig(), LRUConfig(normaliser="tied"), RotRNNConfig(n_heads=2, first_step="authors")]
)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_trained_network_converts_whole(cell: LRUConfig | RotRNNConfig, bidirectional: bool) -> None:
    network = trained(ModelConfig(cell=cell, d_model=4, d_state=8, n_layers=3, bidirectional=bidirectional))
    converted = network_from(network)
    tokens, lengths = torch.randint(5, (3, 30), generator=generator(2)), torch.tensor([30, 11, 1])
    torch.testing.assert_close(converted(tokens, lengths), network(tokens, lengths), **CLOSE)
    found, expected = converted.states(tokens, lengths), network.states(tokens, lengths)
    for block, a, b in zip(network.blocks, found, expected, strict=True):
        torch.testing.assert_close(
            a if isinstance(block.cell, LRU) else states_in_rotrnn_basis(a, block.cell), b, **CLOSE
        )
    torch.testing.assert_close(network_from(converted)(tokens, lengths), network(tokens, lengths), **CLOSE)


def test_a_network_without_equivalent_is_refused() -> None:
    network = Network(ModelConfig(cell=S5Config(), d_model=4, d_state=8), tokens=5, classes=3)
    with pytest.raises(ValueError, match="only LRU and RotRNN"):
        network_from(network)


def test_a_converted_network_trains_with_its_scales_among_the_recurrence() -> None:
    network = network_from(Network(ModelConfig(cell=LRUConfig(), d_model=4, d_state=8), tokens=5, classes=3))
    scales = [block.cell.xi_log for block in network.blocks]
    for scale in scales:
        (group,) = (
            group
            for group in make_optimiser(network, TrainingConfig()).groups
            if any(scale is parameter for parameter in group.parameters)
        )
        assert group.recurrence_rate
    network(torch.arange(12).view(2, 6) % 5).square().sum().backward()
    assert all(scale.grad.any() for scale in scales)


def test_the_demonstration_finds_nothing_beyond_rounding() -> None:
    differences = demonstrate(time=48, batch=2, steps=25)
    assert {difference.dtype for difference in differences} == {"float64", "float32"}
    assert len({difference.conversion for difference in differences}) == 6
    for difference in differences:
        assert difference.is_rounding, difference
    trained = [difference for difference in differences if difference.trained_steps]
    assert len(trained) == 4
    assert all(difference.loss is not None and difference.loss < math.log(8) for difference in trained)


def test_a_difference_beyond_rounding_is_told() -> None:
    assert Difference("a", "float64", 1e-12, 1e-12).is_rounding
    assert not Difference("a", "float64", 1e-12, 1e-10).is_rounding
    assert not Difference("a", "float64", 1e-10, 1e-12).is_rounding
    assert Difference("a", "float32", 1e-6, 1e-6).is_rounding


def test_the_module_speaks_json_and_a_person_s_language(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--time", "20", "--steps", "2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert len(said["differences"]) == 12
    assert said["bound"]["float64"] == 1e-11
    assert main(["--time", "5", "--steps", "1"]) == 0
    assert "LRU, learned normaliser, into RotRNN with heads of 2" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--time", "0"])
    assert "--time is 0" in capsys.readouterr().err
