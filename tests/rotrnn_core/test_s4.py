"""Is S4 the HiPPO-LegS system that it is named after, as kernel, as matrix and by its structure?"""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from rotrnn_core.layers import S4
from rotrnn_core.ops import dplr
from rotrnn_core.ops.complex import Complex, from_side_by_side
from rotrnn_core.ops.hippo import legs, legs_eigenbasis, low_rank

CLOSE = {"rtol": 0.0, "atol": 1e-11}
HasGradientsOf = Callable[..., None]
TIMES = [1, 2, 3, 4, 31, 64, 257]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=generator(seed), dtype=torch.float64)


def s4(d_model: int = 3, order: int = 8, **options: object) -> S4:
    return S4(d_model, d_model * order, generator=generator(), **options).double()  # type: ignore[arg-type]


def hippo_system(order: int, steps: list[float]) -> dplr.System:
    """HiPPO-LegS of an even order in its eigenbasis, one channel for each step size."""
    basis = legs_eigenbasis(order).upper_half()

    def on_each(values: Tensor) -> Tensor:
        return values.repeat(len(steps), 1)

    P, B = basis.enter(low_rank(order)), basis.enter(legs(order)[1])
    return dplr.System(
        Lambda=Complex(torch.full((len(steps), order // 2), -0.5).double(), on_each(basis.frequency)),
        P=Complex(on_each(P.re), on_each(P.im)),
        B=Complex(on_each(B.re), on_each(B.im)),
        step=torch.tensor(steps, dtype=torch.float64).unsqueeze(-1),
    )


def random_system() -> tuple[dplr.System, Complex, list[Tensor]]:
    """A system away from its start, its C, and the leaves that gradients are taken for."""
    leaves = [normal(2, 3, seed=seed).requires_grad_() for seed in range(8)]
    log_step = torch.log(torch.tensor([[0.03], [0.7]], dtype=torch.float64)).requires_grad_()
    Lambda = Complex(-torch.exp(leaves[0]), 5 * leaves[1])
    system = dplr.System(Lambda, Complex(leaves[2], leaves[3]), Complex(leaves[4], leaves[5]), torch.exp(log_step))
    return system, Complex(leaves[6], leaves[7]), [*leaves, log_step]


@pytest.mark.parametrize("time", TIMES)
def test_the_kernel_by_resolvent_is_the_kernel_with_every_gradient(time: int) -> None:
    system, C, leaves = random_system()
    found, expected = dplr.kernel_by_resolvent(system, C, time), dplr.kernel_step_by_step(system, C, time)
    torch.testing.assert_close(found, expected, **CLOSE)
    cotangent = normal(2, time, seed=9)
    gradients = [torch.autograd.grad(kernel, leaves, cotangent, retain_graph=True) for kernel in (found, expected)]
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("order", [2, 8, 64])
def test_the_kernel_is_that_of_hippo_legs_in_its_own_coordinates(order: int) -> None:
    steps, time = [0.001, 0.01, 0.1], 50
    basis = legs_eigenbasis(order).upper_half()
    C = normal(order)
    C_kept = basis.read(Complex(C, torch.zeros(order, dtype=torch.float64)))
    kernel = dplr.kernel_by_resolvent(
        hippo_system(order, steps), Complex(C_kept.re.repeat(3, 1), C_kept.im.repeat(3, 1)), time
    )
    A, B = legs(order)
    unit = torch.eye(order, dtype=torch.float64)
    for channel, step in enumerate(steps):
        state = torch.linalg.solve(unit - step / 2 * A, step * B)
        turn = torch.linalg.solve(unit - step / 2 * A, unit + step / 2 * A)
        for lag in range(time):
            torch.testing.assert_close(kernel[channel, lag], C @ state, **CLOSE)
            state = turn @ state


def test_the_structured_step_is_the_matrix() -> None:
    system, _, _ = random_system()
    matrix, drive = dplr.transition(system)
    h, u = normal(4, 2, 6, seed=10), normal(4, 2, seed=11)
    expected = torch.einsum("dij,bdj->bdi", matrix, h) + drive * u.unsqueeze(-1)
    torch.testing.assert_close(dplr.advance(system, from_side_by_side(h), u).side_by_side(), expected, **CLOSE)


def test_the_low_rank_part_keeps_the_system_stable() -> None:
    system, _, _ = random_system()
    matrix, _ = dplr.transition(system)
    assert torch.linalg.eigvals(matrix).abs().max() < 1
    assert torch.linalg.eigvals(system.matrix()).real.max() < 0


def test_the_layer_starts_from_hippo_legs() -> None:
    cell = S4(3, 3 * 4, generator=generator())
    expected = hippo_system(4, [1.0, 1.0, 1.0])
    found = cell.system()
    for a, b in ((found.Lambda, expected.Lambda), (found.P, expected.P), (found.B, expected.B)):
        torch.testing.assert_close(a.side_by_side().detach(), b.side_by_side(), rtol=1e-6, atol=1e-6)
    poles = torch.linalg.eigvals(found.matrix()[0].detach()).real.sort().values
    # The eigenvalues of HiPPO-LegS itself are -1 .. -N.
    torch.testing.assert_close(poles, -torch.arange(4, 0, -1, dtype=torch.float64), rtol=0, atol=1e-4)
    assert ((cell.log_step >= math.log(0.001)) & (cell.log_step <= math.log(0.1) + 1e-6)).all()


def test_the_layer_gives_the_same_at_every_length() -> None:
    cell = s4()
    u = normal(2, 40, 3, seed=1)
    for length in (1, 2, 7, 32):
        torch.testing.assert_close(cell(u[:, :length]), cell(u)[:, :length], **CLOSE)


def test_outputs_are_read_off_the_states_with_every_gradient(has_gradients_of: HasGradientsOf) -> None:
    cell = s4()
    u = normal(2, 12, 3, seed=1).requires_grad_()
    h = cell.states(u).view(2, 12, 3, 4, 2)
    outputs = 2 * (cell.C_re * h[..., 0] - cell.C_im * h[..., 1]).sum(-1) + cell.D * u
    torch.testing.assert_close(cell(u), outputs, **CLOSE)
    has_gradients_of(cell, u, outputs, rtol=1e-9, atol=1e-10)


def test_the_state_counts_the_complex_states_of_every_channel() -> None:
    cell = s4(d_model=3, order=8)
    assert (cell.d_state, cell.n, cell.n_heads, cell.d_head) == (24, 4, 12, 2)
