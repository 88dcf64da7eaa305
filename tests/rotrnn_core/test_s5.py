"""Does S5 start where its paper says, and is it the system that it is named after?"""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from rotrnn_core.layers import S5
from rotrnn_core.ops.complex import Complex
from rotrnn_core.ops.discretise import Discrete, bilinear, zero_order_hold
from rotrnn_core.ops.hippo import legs, legs_eigenbasis, log_uniform, low_rank

CLOSE = {"rtol": 0.0, "atol": 1e-11}
HasGradientsOf = Callable[..., None]
ORDERS = [1, 2, 3, 8, 64]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def s5(d_model: int = 3, d_state: int = 8, **options: object) -> S5:
    return S5(d_model, d_state, generator=generator(), **options).double()  # type: ignore[arg-type]


def joined(z: Complex) -> Tensor:
    return torch.complex(z.re, z.im)


def eigenvalue(discrete: Discrete) -> Tensor:
    return torch.polar(discrete.decay, discrete.phase)


def test_hippo_legs_has_the_published_entries() -> None:
    A, B = legs(3)
    published = [[-1, 0, 0], [-math.sqrt(3), -2, 0], [-math.sqrt(5), -math.sqrt(15), -3]]
    torch.testing.assert_close(A, torch.tensor(published, dtype=torch.float64))
    torch.testing.assert_close(B, torch.tensor([1, math.sqrt(3), math.sqrt(5)], dtype=torch.float64))


@pytest.mark.parametrize("n", ORDERS)
def test_the_eigenvalues_of_hippo_n_are_minus_a_half_and_imaginary(n: int) -> None:
    A, _ = legs(n)
    normal = A + torch.outer(low_rank(n), low_rank(n))
    found = torch.linalg.eigvals(normal)
    torch.testing.assert_close(found.real, torch.full((n,), -0.5, dtype=torch.float64), rtol=0, atol=1e-10)
    torch.testing.assert_close(found.imag.sort().values, legs_eigenbasis(n).frequency, rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("n", ORDERS)
def test_the_eigenbasis_gives_hippo_legs_back(n: int) -> None:
    basis = legs_eigenbasis(n)
    V = torch.complex(basis.V_re, basis.V_im)
    normal = V @ torch.diag(-0.5 + 1j * basis.frequency) @ V.mH
    torch.testing.assert_close(V.mH @ V, torch.eye(n, dtype=torch.complex128), **CLOSE)
    A, _ = legs(n)
    torch.testing.assert_close(normal.real - torch.outer(low_rank(n), low_rank(n)), A, rtol=1e-12, atol=1e-11)
    torch.testing.assert_close(normal.imag, torch.zeros_like(A), rtol=0, atol=1e-11)


def test_entering_and_reading_are_products_with_the_eigenvectors() -> None:
    basis = legs_eigenbasis(6).upper_half()
    V = torch.complex(basis.V_re, basis.V_im)
    x = torch.randn(6, 2, generator=generator(), dtype=torch.float64)
    c = torch.randn(3, 6, generator=generator(), dtype=torch.complex128)
    torch.testing.assert_close(joined(basis.enter(x)), V.mH @ x.to(V.dtype), **CLOSE)
    torch.testing.assert_close(joined(basis.read(Complex(c.real, c.imag))), c @ V, **CLOSE)


def test_every_eigenvector_has_one_phase_on_every_machine() -> None:
    basis = legs_eigenbasis(8)
    torch.testing.assert_close(basis.V_im[0], torch.zeros(8, dtype=torch.float64), **CLOSE)
    assert (basis.V_re[0] > 0.01).all()


def test_the_upper_half_and_its_conjugates_are_the_whole_basis() -> None:
    whole = legs_eigenbasis(8)
    half = whole.upper_half()
    assert (half.frequency > 0).all()
    torch.testing.assert_close(whole.frequency, torch.cat([-half.frequency.flip(0), half.frequency]), **CLOSE)
    torch.testing.assert_close(whole.V_re[:, :4], half.V_re.flip(1), **CLOSE)
    torch.testing.assert_close(whole.V_im[:, :4], -half.V_im.flip(1), **CLOSE)


def test_the_smallest_frequency_is_known_in_closed_form() -> None:
    expected = torch.tensor([-math.sqrt(3) / 2, math.sqrt(3) / 2], dtype=torch.float64)
    torch.testing.assert_close(legs_eigenbasis(2).frequency, expected)


def test_every_block_starts_from_hippo_n_of_its_own_size() -> None:
    cell = S5(3, 16, n_blocks=4)
    torch.testing.assert_close(cell.Lambda_re.data, torch.full((8,), -0.5))
    torch.testing.assert_close(cell.Lambda_im.data, legs_eigenbasis(4).upper_half().frequency.float().repeat(4))
    free = S5(3, 16, n_blocks=4, conjugates="free")
    torch.testing.assert_close(free.Lambda_im.data, legs_eigenbasis(2).frequency.float().repeat(4))


def test_initial_b_and_c_are_real_matrices_seen_from_the_eigenbasis() -> None:
    cell = S5(300, 32, n_blocks=2, bidirectional=True, generator=generator())
    basis = legs_eigenbasis(16).upper_half()
    V = torch.complex(basis.V_re, basis.V_im)
    for block in range(2):
        rows = slice(8 * block, 8 * block + 8)
        kept = torch.complex(cell.B_re.data[rows], cell.B_im.data[rows]).to(torch.complex128)
        B = 2 * (V @ kept).real
        # V^H B is half of a unitary transform: entering it again loses nothing.
        torch.testing.assert_close(V.mH @ B.to(V.dtype), kept, rtol=0, atol=1e-6)
        assert float(B.std()) == pytest.approx(1 / math.sqrt(32), rel=4 / math.sqrt(2 * B.numel()))
        assert float(B.abs().max()) < 2 / (math.sqrt(32) * 0.8796)
    C = torch.complex(cell.C_re.data, cell.C_im.data)
    assert C.shape == (300, 2 * 16)
    # c V of a complex c with deviation 1 / sqrt(P) in each part, through orthonormal columns
    for part in (C.real, C.imag):
        assert float(part.std()) == pytest.approx(1 / math.sqrt(32), rel=4 / math.sqrt(2 * part.numel()))


def test_initial_steps_are_log_uniform_in_their_range() -> None:
    logs = log_uniform((20_000,), 0.001, 0.1, generator())
    assert math.log(0.001) <= float(logs.min()) < math.log(0.00101)
    assert math.log(0.099) < float(logs.max()) <= math.log(0.1)
    assert float(logs.mean()) == pytest.approx(math.log(0.01), abs=4 * math.log(100) / math.sqrt(12 * 20_000))


@pytest.mark.parametrize("step", [1e-7, 0.01, 1.0, 30.0])
def test_zero_order_hold_is_the_exact_answer_to_a_held_input(step: float) -> None:
    Lambda = Complex(torch.tensor([-0.5, -1e-9, -20.0]).double(), torch.tensor([0.3, 7.0, 0.0]).double())
    found = zero_order_hold(Lambda, torch.tensor(step))
    for index, value in enumerate(joined(Lambda)):
        held = torch.zeros(2, 2, dtype=torch.complex128)
        held[0, 0], held[0, 1] = value, 1
        exact = torch.linalg.matrix_exp(held * torch.tensor(step).double())[0]
        torch.testing.assert_close(eigenvalue(found)[index], exact[0], rtol=1e-11, atol=1e-13)
        torch.testing.assert_close(joined(found.gain)[index], exact[1], rtol=1e-11, atol=1e-13)


def test_the_bilinear_rule_is_its_equation() -> None:
    Lambda, step = torch.complex(torch.tensor([-0.5, -3.0]), torch.tensor([9.0, -0.1])).to(torch.complex128), 0.7
    found = bilinear(Complex(Lambda.real, Lambda.imag), torch.tensor(step, dtype=torch.float64))
    torch.testing.assert_close(eigenvalue(found), (1 + step / 2 * Lambda) / (1 - step / 2 * Lambda), **CLOSE)
    torch.testing.assert_close(joined(found.gain), step / (1 - step / 2 * Lambda), **CLOSE)


def by_definition(cell: S5, u: Tensor) -> tuple[Tensor, Tensor]:
    """The equations of the docstring, written in complex numbers; one direction."""
    Lambda, step = torch.complex(cell.Lambda_re, cell.Lambda_im), torch.exp(cell.log_step)
    lambda_bar = torch.exp(Lambda * step)
    B_bar = ((lambda_bar - 1) / Lambda).unsqueeze(-1) * torch.complex(cell.B_re, cell.B_im)
    C = torch.complex(cell.C_re, cell.C_im)
    factor = 2 if cell.conjugates == "paired" else 1
    h = torch.zeros(len(u), len(Lambda), dtype=Lambda.dtype)
    outputs, states = [], []
    for now in u.unbind(1):
        h = lambda_bar * h + now.to(h.dtype) @ B_bar.mT
        outputs.append(factor * (h @ C.mT).real + cell.D * now)
        states.append(torch.view_as_real(h).flatten(-2))
    return torch.stack(outputs, dim=1), torch.stack(states, dim=1)


@pytest.mark.parametrize("conjugates", ["paired", "free"])
def test_the_layer_is_its_equations_with_every_gradient(conjugates: str, has_gradients_of: HasGradientsOf) -> None:
    cell = s5(conjugates=conjugates, n_blocks=2)
    u = torch.randn(2, 11, 3, generator=generator(1), dtype=torch.float64, requires_grad=True)
    outputs, states = by_definition(cell, u)
    torch.testing.assert_close(cell(u), outputs, **CLOSE)
    torch.testing.assert_close(cell.states(u), states, **CLOSE)
    has_gradients_of(cell, u, outputs, rtol=1e-10, atol=1e-11)


def test_a_paired_system_is_a_free_one_with_both_members_of_each_pair() -> None:
    paired = s5(d_state=8)
    free = s5(d_state=16, conjugates="free")
    both = {
        "Lambda_re": torch.cat([paired.Lambda_re, paired.Lambda_re]),
        "Lambda_im": torch.cat([paired.Lambda_im, -paired.Lambda_im]),
        "log_step": paired.log_step.repeat(2),
        "B_re": paired.B_re.repeat(2, 1),
        "B_im": torch.cat([paired.B_im, -paired.B_im]),
        "C_re": paired.C_re.repeat(1, 2),
        "C_im": torch.cat([paired.C_im, -paired.C_im], dim=1),
        "D": paired.D,
    }
    free.load_state_dict(both)
    u = torch.randn(2, 20, 3, generator=generator(2), dtype=torch.float64)
    torch.testing.assert_close(free(u), paired(u), **CLOSE)


def test_each_complex_channel_is_a_head_of_two() -> None:
    cell = s5(d_state=10)
    assert (cell.n_heads, cell.d_head) == (5, 2)
