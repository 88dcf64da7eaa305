"""Do RotRNN and LRU obey their equations and laws at every size, length, direction and cut?

The yardstick is `rotrnn_core.equivalence.equations`: complex numbers for LRU, the matrix A formed for RotRNN.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rotrnn_core.equivalence import by_equations
from rotrnn_core.layers import LRU, RotRNN
from rotrnn_core.ops.rotation import rotation_from

CLOSE = {"rtol": 0.0, "atol": 1e-11}
TIMES = (1, 2, 3, 5, 7, 13, 31, 67)


@dataclass(frozen=True)
class Case:
    """A cell with its sizes, and the shape of its input."""

    build: Callable[..., Any]
    d_head: int
    n_heads: int
    d_model: int
    batch: int
    time: int
    bidirectional: bool
    options: dict[str, Any] = field(default_factory=dict)

    def cell(self, **changes: Any) -> Any:
        """The cell in float64, its parameters away from where they begin."""
        heads = (self.n_heads,) if self.build is RotRNN else ()
        options = {"bidirectional": self.bidirectional, **self.options, **changes}
        made = self.build(self.d_model, self.d_state, *heads, generator=generator(), **options).double()
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator(1), dtype=torch.float64))
        return made

    @property
    def d_state(self) -> int:
        return self.d_head * self.n_heads

    def input(self) -> Tensor:
        shape = (self.batch, self.time, self.d_model)
        return torch.randn(shape, generator=generator(2), dtype=torch.float64)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rotrnns(*, first_step: tuple[str, ...] = ("exact", "authors"), directions: int = 2) -> st.SearchStrategy[Case]:
    """RotRNNs with heads of 2 to 32."""
    options = {"first_step": st.sampled_from(first_step), "init": st.sampled_from(["log-uniform", "ring"])}
    return st.builds(
        Case,
        build=st.just(RotRNN),
        d_head=st.sampled_from([2, 4, 6, 16, 32]),
        n_heads=st.integers(1, 3),
        options=st.fixed_dictionaries(options),
        **sizes(directions),
    )


def lrus(*, directions: int = 2) -> st.SearchStrategy[Case]:
    """LRUs of one to nine channels."""
    return st.builds(
        Case,
        build=st.just(LRU),
        d_head=st.just(2),
        n_heads=st.integers(1, 9),
        options=st.fixed_dictionaries({"normaliser": st.sampled_from(["learned", "tied"])}),
        **sizes(directions),
    )


def sizes(directions: int) -> dict[str, Any]:
    """Width, batch and time, the odd and the least ones among them."""
    return {
        "d_model": st.integers(1, 4),
        "batch": st.integers(1, 3),
        "time": st.sampled_from(TIMES),
        "bidirectional": st.booleans() if directions == 2 else st.just(False),
    }


def cases(**options: Any) -> st.SearchStrategy[Case]:
    return st.one_of(rotrnns(**options), lrus(**options))


@given(cases())
@settings(max_examples=25, deadline=None)
def test_a_layer_is_its_equations_with_the_gradient_of_every_parameter(case: Case) -> None:
    cell, u = case.cell(), case.input().requires_grad_()
    outputs, states = by_equations(cell, u)
    torch.testing.assert_close(cell(u), outputs, **CLOSE)
    torch.testing.assert_close(cell.states(u), states, **CLOSE)
    names, parameters = zip(*cell.named_parameters(), strict=True)
    weights = torch.cos(torch.arange(outputs.numel(), dtype=torch.float64)).view_as(outputs)
    expected = torch.autograd.grad((outputs * weights).sum(), [*parameters, u])
    found = torch.autograd.grad((cell(u) * weights).sum(), [*parameters, u])
    for name, a, b in zip([*names, "u"], found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("build", [RotRNN, LRU])
def test_a_layer_is_its_equations_over_4097_steps_of_one_sequence(build: Callable[..., Any]) -> None:
    case = Case(build, 4 if build is RotRNN else 2, 2, 1, 1, 4097, bidirectional=True)
    cell, u = case.cell(), case.input()
    with torch.no_grad():
        outputs, states = by_equations(cell, u)
        torch.testing.assert_close(cell(u), outputs, **CLOSE)
        torch.testing.assert_close(cell.states(u), states, **CLOSE)


@given(cases(directions=1), st.data())
@settings(max_examples=20, deadline=None)
def test_any_cut_with_carried_state_and_single_steps_give_what_the_whole_gives(case: Case, data: st.DataObject) -> None:
    cell, u = case.cell(), case.input()
    cut = data.draw(st.integers(0, case.time), label="cut")
    whole, states = cell(u), cell.states(u)
    h = cell.states(u[:, :cut])[:, -1] if cut else None
    for time in range(cut, case.time):
        y, h = cell.step(u[:, time], h)
        torch.testing.assert_close(y, whole[:, time], **CLOSE)
        torch.testing.assert_close(h, states[:, time], **CLOSE)


@given(cases(), st.data())
@settings(max_examples=20, deadline=None)
def test_a_ragged_batch_gives_each_sequence_what_it_gets_alone(case: Case, data: st.DataObject) -> None:
    cell, u = case.cell(), case.input()
    lengths = [data.draw(st.integers(1, case.time), label="length") for _ in range(case.batch)]
    for row, length in enumerate(lengths):
        u[row, length:] = math.nan
    outputs, states = cell(u, torch.tensor(lengths)), cell.states(u, torch.tensor(lengths))
    for row, length in enumerate(lengths):
        alone = u[row : row + 1, :length]
        torch.testing.assert_close(outputs[row : row + 1, :length], cell(alone), **CLOSE)
        torch.testing.assert_close(states[row : row + 1, :length], cell.states(alone), **CLOSE)
        assert not outputs[row, length:].any()
        assert not states[row, length:].any()


@given(cases())
@settings(max_examples=15, deadline=None)
def test_a_sequence_read_backwards_swaps_the_directions(case: Case) -> None:
    both = replace(case, bidirectional=True)
    cell, u = both.cell(), both.input()
    shape = (both.batch, both.time, both.n_heads, 2, both.d_head)
    states, turned = cell.states(u).view(shape), cell.states(u.flip(1)).view(shape)
    torch.testing.assert_close(turned.flip(1).flip(3), states, **CLOSE)


@given(st.one_of(rotrnns(first_step=("authors",), directions=1), lrus(directions=1)))
@settings(max_examples=15, deadline=None)
def test_a_layer_is_a_convolution_with_the_powers_of_its_transition(case: Case) -> None:
    cell, u = case.cell(), case.input()
    impulses = torch.eye(case.d_model, dtype=torch.float64).unsqueeze(1)
    kernel = by_equations(cell, torch.nn.functional.pad(impulses, (0, 0, 0, case.time - 1)))[1]
    wanted = torch.zeros(case.batch, case.time, case.d_state, dtype=torch.float64)
    for lag in range(case.time):
        wanted[:, lag:] += u[:, : case.time - lag] @ kernel[:, lag]
    torch.testing.assert_close(cell.states(u), wanted, **CLOSE)


@given(st.sampled_from([2, 4, 6, 16, 32]), st.integers(0, 40), st.floats(0.01, 3))
@settings(max_examples=25, deadline=None)
def test_a_is_a_rotation_and_its_powers_turn_the_phases(d_head: int, power: int, size: float) -> None:
    M = size * torch.randn(1, d_head, d_head, generator=generator(d_head), dtype=torch.float64)
    phase = 7 * torch.rand(d_head // 2, generator=generator(1), dtype=torch.float64)
    P = rotation_from(M)[0]

    def turned(times: int) -> Tensor:
        turns = [torch.tensor([[a.cos(), -a.sin()], [a.sin(), a.cos()]]) for a in times * phase]
        return P @ torch.block_diag(*turns).double() @ P.mT

    A = turned(1)
    torch.testing.assert_close(A @ A.mT, torch.eye(d_head, dtype=torch.float64), **CLOSE)
    torch.testing.assert_close(torch.linalg.det(A), torch.ones((), dtype=torch.float64), **CLOSE)
    torch.testing.assert_close(torch.linalg.matrix_power(A, power), turned(power), **CLOSE)


@given(rotrnns())
@settings(max_examples=15, deadline=None)
def test_p_changes_parameters_only_and_no_function_norm_or_normaliser(case: Case) -> None:
    cell, plain = case.cell(), case.cell()
    P = rotation_from(cell.M)
    with torch.no_grad():
        plain.M.zero_()
        plain.B.copy_(P.mT @ cell.B)
        C = cell.C.view(case.d_model, case.n_heads, cell.directions, case.d_head)
        plain.C.copy_(torch.einsum("mhdi,hij->mhdj", C, P).flatten(1))
    u = case.input()
    heads = (case.batch, case.time, case.n_heads, cell.directions, case.d_head)
    torch.testing.assert_close(plain(u), cell(u), **CLOSE)
    norms = [one.states(u).view(heads).norm(dim=-1) for one in (plain, cell)]
    torch.testing.assert_close(*norms, **CLOSE)
    torch.testing.assert_close(plain.input_scale(), cell.input_scale(), **CLOSE)


@given(rotrnns(first_step=("authors",)))
@settings(max_examples=15, deadline=None)
def test_a_head_is_conjugate_pairs_that_share_one_modulus_and_one_normaliser(case: Case) -> None:
    cell, u = case.cell(), case.input()
    with torch.no_grad():
        cell.M.zero_()
    pairs = replace(case, build=LRU, d_head=2, n_heads=case.d_state // 2, options={}).cell()
    each = case.d_head // 2
    with torch.no_grad():
        pairs.nu_log.copy_(cell.gamma_log.repeat_interleave(each))
        pairs.theta_log.copy_(torch.log(torch.remainder(cell.phases().flatten(), 2 * math.pi)))
        pairs.gamma_log.copy_(torch.log(cell.input_scale()).repeat_interleave(each))
        pairs.B_re.copy_(cell.B.flatten(0, 1)[0::2])
        pairs.B_im.copy_(cell.B.flatten(0, 1)[1::2])
    heads = (case.batch, case.time, case.n_heads, cell.directions, each, 2)
    expected = cell.states(u).view(heads)
    found = pairs.states(u).view(case.batch, case.time, case.n_heads, each, cell.directions, 2).transpose(3, 4)
    torch.testing.assert_close(found, expected, **CLOSE)


@pytest.mark.parametrize("first_step", ["exact", "authors"])
def test_white_input_keeps_the_length_that_theory_says_within_four_standard_errors(first_step: str) -> None:
    case = Case(RotRNN, 6, 3, 4, 3000, 40, bidirectional=False, options={"first_step": first_step})
    cell, u = case.cell(), case.input()
    with torch.no_grad():
        squared = cell.states(u).view(case.batch, case.time, 3, 6).square().sum(-1)
    decay = torch.exp(-torch.exp(cell.gamma_log)).detach()
    times = torch.arange(1, case.time + 1, dtype=torch.float64).unsqueeze(-1)
    theory = torch.ones(case.time, 3).double() if first_step == "exact" else 1 - decay ** (2 * times)
    for values, wanted in ((squared, theory), (squared.sum(-1), theory.sum(-1))):
        error = values.std(0) / math.sqrt(case.batch)
        assert ((values.mean(0) - wanted) / error).abs().max() < 4


def test_a_tied_lru_keeps_the_energy_that_theory_says_within_four_standard_errors() -> None:
    case = Case(LRU, 2, 5, 4, 3000, 40, bidirectional=False, options={"normaliser": "tied"})
    cell, u = case.cell(), case.input()
    with torch.no_grad():
        squared = cell.states(u).view(case.batch, case.time, 5, 2).square().sum(-1)
        modulus = torch.exp(-torch.exp(cell.nu_log))
        driven = (cell.B_re.square() + cell.B_im.square()).sum(-1)
    times = torch.arange(1, case.time + 1, dtype=torch.float64).unsqueeze(-1)
    error = squared.std(0) / math.sqrt(case.batch)
    assert ((squared.mean(0) - (1 - modulus ** (2 * times)) * driven) / error).abs().max() < 4


@pytest.mark.parametrize(("first_step", "reached"), [("authors", 0.9817), ("exact", 1.0)])
def test_at_a_decay_of_9999_the_authors_scale_takes_twenty_thousand_steps(first_step: str, reached: float) -> None:
    time = 20_000
    cell = RotRNN(1, 4, 1, first_step=first_step, generator=generator()).double()  # type: ignore[arg-type]
    with torch.no_grad():
        cell.gamma_log.fill_(math.log(-math.log(0.9999)))
        later, first = torch.zeros(2, time, 1, dtype=torch.float64).unbind(0)
        first[0], later[1] = 1, 1
        energy = [cell.states(impulse.unsqueeze(0))[0].square().sum(-1) for impulse in (first, later)]
    # White input: the energies of all impulses add up; those after the first are the same one, shifted.
    assert float(energy[1][1:].sum() + energy[0][-1]) == pytest.approx(reached, abs=1e-4)


@pytest.mark.parametrize("decay", [0.5, 0.9, 0.999])
def test_constant_input_at_phase_zero_is_amplified_as_theory_says(decay: float) -> None:
    cell = RotRNN(1, 6, 1, first_step="authors", generator=generator()).double()
    with torch.no_grad():
        cell.gamma_log.fill_(math.log(-math.log(decay)))
        cell.theta_log.fill_(-50)
        norm = cell.states(torch.ones(1, 20_000, 1, dtype=torch.float64))[0, -1].norm()
    assert float(norm) == pytest.approx(math.sqrt((1 + decay) / (1 - decay)), rel=1e-8)
