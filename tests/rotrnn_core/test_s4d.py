"""Does S4D start where its paper says, and do kernel, convolution and recurrence agree?"""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from rotrnn_core.layers import S4D
from rotrnn_core.ops.complex import Complex
from rotrnn_core.ops.diagonal_kernel import kernel_from_every_power, kernel_from_two_levels
from rotrnn_core.ops.fourier import convolve, convolve_directly, from_spectrum
from rotrnn_core.ops.hippo import legs, legs_eigenbasis

CLOSE = {"rtol": 0.0, "atol": 1e-11}
HasGradientsOf = Callable[..., None]
TIMES = [1, 2, 3, 4, 16, 17, 101]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=generator(seed), dtype=torch.float64)


def s4d(d_model: int = 3, d_state: int = 24, **options: object) -> S4D:
    return S4D(d_model, d_state, generator=generator(), **options).double()  # type: ignore[arg-type]


def test_legs_starts_from_the_eigenvalues_of_hippo_n() -> None:
    cell = S4D(3, 48)
    basis = legs_eigenbasis(16).upper_half()
    torch.testing.assert_close(-torch.exp(cell.Lambda_re_log.data), torch.full((3, 8), -0.5))
    torch.testing.assert_close(cell.Lambda_im.data, basis.frequency.float().expand(3, -1))
    B = 2 * (torch.complex(basis.V_re, basis.V_im) @ torch.complex(cell.B_re[0], cell.B_im[0]).to(torch.complex128))
    torch.testing.assert_close(B.real, legs(16)[1], rtol=1e-6, atol=1e-6)


def test_lin_starts_from_multiples_of_pi_and_a_b_of_one() -> None:
    cell = S4D(2, 16, init="lin")
    torch.testing.assert_close(-torch.exp(cell.Lambda_re_log.data), torch.full((2, 4), -0.5))
    torch.testing.assert_close(cell.Lambda_im.data, math.pi * torch.arange(4.0).expand(2, -1))
    assert torch.equal(cell.B_re.data, torch.ones(2, 4))
    assert not cell.B_im.any()


def test_initial_c_has_unit_variance_and_steps_lie_in_their_range() -> None:
    cell = S4D(200, 200 * 64, dt_min=0.01, dt_max=0.02, generator=generator())
    variance = (cell.C_re.square() + cell.C_im.square()).mean()
    assert float(variance) == pytest.approx(1, abs=4 / math.sqrt(cell.C_re.numel()))
    assert cell.log_step.min() >= math.log(0.01)
    assert cell.log_step.max() <= math.log(0.02) + 1e-6


@pytest.mark.parametrize("time", [*TIMES, 4097])
def test_the_kernel_from_two_levels_is_the_kernel(time: int) -> None:
    decay = torch.linspace(0.2, 1 - 1e-7, 10, dtype=torch.float64).view(2, 5)
    values = [decay, 3 * normal(2, 5), normal(2, 5, seed=1), normal(2, 5, seed=2)]
    values = [value.requires_grad_() for value in values]
    found, expected = (
        kernel(values[0], values[1], Complex(values[2], values[3]), time)
        for kernel in (kernel_from_two_levels, kernel_from_every_power)
    )
    torch.testing.assert_close(found, expected, **CLOSE)
    cotangent = normal(2, time, seed=3)
    for name, a, b in zip(
        ("decay", "phase", "weight_re", "weight_im"),
        torch.autograd.grad(found, values, cotangent),
        torch.autograd.grad(expected, values, cotangent),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("time", TIMES)
def test_the_convolution_by_transform_is_the_convolution(time: int, reverse: bool) -> None:
    u, kernel = normal(2, time, 3).requires_grad_(), normal(3, time, seed=1).requires_grad_()
    found, expected = convolve(u, kernel, reverse=reverse), convolve_directly(u, kernel, reverse=reverse)
    torch.testing.assert_close(found, expected, **CLOSE)
    cotangent = normal(2, time, 3, seed=2)
    for a, b in zip(
        torch.autograd.grad(found, [u, kernel], cotangent),
        torch.autograd.grad(expected, [u, kernel], cotangent),
        strict=True,
    ):
        torch.testing.assert_close(a, b, **CLOSE)


@pytest.mark.parametrize("time", TIMES)
def test_a_spectrum_gives_its_sequence_and_the_right_gradient(time: int) -> None:
    sequence = normal(2, time)
    spectrum = torch.fft.rfft(sequence)
    torch.testing.assert_close(from_spectrum(spectrum.real, spectrum.imag, time), sequence, **CLOSE)
    parts = [part.clone().requires_grad_() for part in (spectrum.real, spectrum.imag)]
    assert torch.autograd.gradcheck(lambda re, im: from_spectrum(re, im, time), parts)


def by_definition(cell: S4D, u: Tensor) -> tuple[Tensor, Tensor]:
    """The equations of the paper, written in complex numbers; one direction."""
    Lambda = torch.complex(-torch.exp(cell.Lambda_re_log), cell.Lambda_im)
    step = torch.exp(cell.log_step).unsqueeze(-1)
    if cell.discretisation == "zoh":
        A = torch.exp(Lambda * step)
        drive = (A - 1) / Lambda
    else:
        A = (1 + step / 2 * Lambda) / (1 - step / 2 * Lambda)
        drive = step / (1 - step / 2 * Lambda)
    drive = drive * torch.complex(cell.B_re, cell.B_im)
    C = torch.complex(cell.C_re, cell.C_im)
    h = torch.zeros(len(u), *Lambda.shape, dtype=Lambda.dtype)
    outputs, states = [], []
    for now in u.unbind(1):
        h = A * h + drive * now.unsqueeze(-1)
        outputs.append(2 * (C * h).sum(-1).real + cell.D * now)
        states.append(torch.view_as_real(h).flatten(1))
    return torch.stack(outputs, dim=1), torch.stack(states, dim=1)


@pytest.mark.parametrize("discretisation", ["zoh", "bilinear"])
@pytest.mark.parametrize("init", ["legs", "lin"])
def test_the_layer_is_its_equations_with_every_gradient(
    init: str, discretisation: str, has_gradients_of: HasGradientsOf
) -> None:
    cell = s4d(init=init, discretisation=discretisation)
    u = normal(2, 13, 3, seed=1).requires_grad_()
    outputs, states = by_definition(cell, u)
    torch.testing.assert_close(cell(u), outputs, **CLOSE)
    torch.testing.assert_close(cell.states(u), states, **CLOSE)
    has_gradients_of(cell, u, outputs, rtol=1e-10, atol=1e-11)


def test_channels_do_not_mix() -> None:
    cell = s4d()
    u = normal(1, 6, 3)
    changed = u.clone()
    changed[..., 1] += 1
    difference = (cell(changed) - cell(u)).abs().amax((0, 1))
    assert difference[1] > 0.1
    assert not difference[[0, 2]].any()


def test_the_state_counts_the_complex_states_of_every_channel() -> None:
    cell = s4d(d_model=3, d_state=24)
    assert (cell.n, cell.n_heads, cell.d_head) == (4, 12, 2)
    assert cell.states(normal(1, 5, 3)).shape == (1, 5, 24)
