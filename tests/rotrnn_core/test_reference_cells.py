"""Are the non-linear and the attention reference torch's own, with padding left out?"""

import math

import pytest
import torch
from torch import Tensor

from rotrnn_core.layers import GRU, Transformer
from rotrnn_core.layers.transformer import position_codes

CLOSE = {"rtol": 0.0, "atol": 1e-11}


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def sequence(time: int = 9) -> Tensor:
    return torch.randn(2, time, 4, generator=generator(1), dtype=torch.float64)


def test_gru_is_torchs_with_a_linear_read_out() -> None:
    cell = GRU(4, 5, generator=generator()).double()
    u = sequence()
    h = torch.zeros(2, 5, dtype=torch.float64)
    units = cell.forward_units
    for time, now in enumerate(u.unbind(1)):
        from_input = now @ units.weight_ih_l0.mT + units.bias_ih_l0
        from_state = h @ units.weight_hh_l0.mT + units.bias_hh_l0
        reset, update = torch.sigmoid(from_input + from_state)[:, :10].chunk(2, dim=-1)
        new = torch.tanh(from_input[:, 10:] + reset * from_state[:, 10:])
        h = (1 - update) * new + update * h
        torch.testing.assert_close(cell.states(u)[:, time], h, **CLOSE)
        torch.testing.assert_close(cell(u)[:, time], cell.C(h), **CLOSE)


def test_a_bidirectional_gru_reads_each_sequence_from_its_own_end() -> None:
    cell = GRU(4, 5, bidirectional=True, generator=generator()).double()
    u, lengths = sequence(), torch.tensor([9, 4])
    assert cell.backward_units is not None
    states = cell.states(u, lengths)
    for row, length in enumerate(lengths):
        turned, _ = cell.backward_units(u[row : row + 1, :length].flip(1))
        torch.testing.assert_close(states[row, :length, 5:], turned[0].flip(0), **CLOSE)


def test_the_whole_state_of_a_gru_is_one_head() -> None:
    assert GRU(4, 5).n_heads == 1


@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_transformer_is_torchs_encoder_layer_on_coded_positions(bidirectional: bool) -> None:
    cell = Transformer(4, 6, n_heads=2, bidirectional=bidirectional, generator=generator()).double()
    u = sequence()
    mask = None if bidirectional else torch.nn.Transformer.generate_square_subsequent_mask(9, dtype=u.dtype)
    expected = cell.encoder(u + position_codes(9, 4), src_mask=mask)
    torch.testing.assert_close(cell(u), expected, **CLOSE)


def test_the_transformer_tells_positions_apart() -> None:
    cell = Transformer(4, 6, n_heads=2, bidirectional=True, generator=generator()).double()
    u = sequence()
    assert (cell(u.flip(1)).flip(1) - cell(u)).abs().max() > 0.01


def test_position_codes_are_the_published_ones() -> None:
    codes = position_codes(5, 6)
    for time in range(5):
        for k in range(3):
            angle = time / 10_000 ** (2 * k / 6)
            assert float(codes[time, 2 * k]) == pytest.approx(math.sin(angle))
            assert float(codes[time, 2 * k + 1]) == pytest.approx(math.cos(angle))


def test_the_transformer_defines_no_trace_and_says_so() -> None:
    cell = Transformer(4, 6, n_heads=2)
    assert cell.n_heads is None
    with pytest.raises(ValueError, match="no state of fixed size"):
        cell.states(torch.zeros(1, 3, 4))
    with pytest.raises(ValueError, match="no state of fixed size"):
        cell.step(torch.zeros(1, 4))


@pytest.mark.parametrize("bidirectional", [False, True])
def test_evaluation_mode_gives_what_training_mode_gives(bidirectional: bool) -> None:
    cell = Transformer(4, 6, n_heads=2, bidirectional=bidirectional, generator=generator()).double()
    u, lengths = sequence(), torch.tensor([9, 4])
    trained = cell(u, lengths)
    with torch.no_grad():
        torch.testing.assert_close(cell.eval()(u, lengths), trained, **CLOSE)
