"""Is every fast form of the scan the definition, gradients included?"""

import math

import pytest
import torch
from torch import Tensor

from rotrnn_core.ops.pairs import to_heads_order, to_scan_order
from rotrnn_core.ops.scan import scan, scan_blocked, scan_sequential

TIMES = [1, 2, 3, 4, 5, 7, 16, 31, 64, 97]


def problem(time: int, pairs: int = 3, batch: int = 2, seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Random drive, decay, phase and initial state in float64, all asking for gradients."""
    generator = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator, dtype=torch.float64)

    drive = (uniform(batch, time, 2 * pairs) - 0.5).requires_grad_()
    decay = (0.05 + 0.94 * uniform(pairs)).requires_grad_()
    phase = (7 * uniform(pairs) - 0.5).requires_grad_()
    h0 = (uniform(batch, 2 * pairs) - 0.5).requires_grad_()
    return drive, decay, phase, h0


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.parametrize("time", TIMES)
def test_the_fast_scan_is_the_definition_with_every_gradient(time: int, carried: bool, reverse: bool) -> None:
    drive, decay, phase, h0 = problem(time)
    inputs = [drive, decay, phase, *([h0] if carried else [])]
    given = h0 if carried else None
    weights = torch.sin(torch.arange(drive.numel(), dtype=torch.float64)).view_as(drive)

    slow = scan_sequential(drive, decay, phase, given, reverse=reverse)
    fast = scan_blocked(drive, decay, phase, given, reverse=reverse)
    torch.testing.assert_close(fast, slow, rtol=0, atol=1e-12)

    wanted = torch.autograd.grad((slow * weights).sum(), inputs, allow_unused=True, materialize_grads=True)
    found = torch.autograd.grad((fast * weights).sum(), inputs)
    for name, one, other in zip(("drive", "decay", "phase", "h0"), found, wanted, strict=False):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("reverse", [False, True])
def test_gradients_agree_with_finite_differences(reverse: bool) -> None:
    assert torch.autograd.gradcheck(
        lambda drive, decay, phase, h0: scan_blocked(drive, decay, phase, h0, reverse=reverse), problem(7, pairs=2)
    )


@pytest.mark.parametrize("cut", [1, 4, 8])
def test_a_cut_sequence_gives_what_the_whole_gives(cut: int) -> None:
    drive, decay, phase, h0 = problem(9)
    whole = scan(drive, decay, phase, h0)
    first = scan(drive[:, :cut], decay, phase, h0)
    second = scan(drive[:, cut:], decay, phase, first[:, -1])
    torch.testing.assert_close(torch.cat([first, second], dim=1), whole, rtol=0, atol=1e-13)


def test_backwards_is_forwards_on_the_flipped_sequence() -> None:
    drive, decay, phase, h0 = problem(11)
    backwards = scan(drive, decay, phase, h0, reverse=True)
    flipped = scan(drive.flip(1), decay, phase, h0).flip(1)
    torch.testing.assert_close(backwards, flipped, rtol=0, atol=1e-13)


def test_the_scan_is_a_convolution_with_powers_of_the_eigenvalues() -> None:
    drive, decay, phase, _ = problem(13)
    re, im = drive.detach().chunk(2, dim=-1)
    eigenvalue = torch.polar(decay.detach(), phase.detach())
    lags = torch.arange(13)[:, None] - torch.arange(13)
    kernel = torch.where((lags >= 0)[..., None], eigenvalue ** lags.clamp(min=0)[..., None], 0)
    wanted = torch.einsum("tsp,bsp->btp", kernel, torch.complex(re, im))
    found = scan(drive, decay, phase)
    torch.testing.assert_close(found, torch.cat([wanted.real, wanted.imag], dim=-1), rtol=0, atol=1e-12)


def test_a_tiny_decay_is_no_trouble() -> None:
    drive, _, phase, _ = problem(50)
    decay = torch.full((3,), 1e-9, dtype=torch.float64)
    torch.testing.assert_close(scan(drive, decay, phase), drive, rtol=1e-7, atol=1e-8)


def test_single_precision_stays_close_over_a_long_sequence_near_the_unit_circle() -> None:
    time = 4096
    generator = torch.Generator().manual_seed(1)
    drive = torch.randn(1, time, 4, generator=generator)
    decay = torch.tensor([0.9999, 0.99999], dtype=torch.float64)
    phase = torch.tensor([6.1, 0.3], dtype=torch.float64)
    wanted = scan_sequential(drive.double(), decay, phase)
    error = (scan(drive, decay, phase).double() - wanted).abs().max() / wanted.abs().max()
    assert error < 1e-5


def test_a_value_that_is_not_finite_stays_visible() -> None:
    drive, decay, phase, _ = problem(20)
    drive = drive.detach()
    drive[0, 5, 0] = math.nan
    states = scan(drive, decay, phase)
    assert states[0, 5:].isnan().any(dim=-1).all()
    assert states[0, :5].isfinite().all()
    assert states[1].isfinite().all()


def test_the_two_orders_of_a_state_undo_each_other() -> None:
    x = torch.arange(24.0).view(2, 6, 2)
    assert to_scan_order(torch.tensor([0.0, 1.0, 2.0, 3.0])).tolist() == [0.0, 2.0, 1.0, 3.0]
    assert torch.equal(to_heads_order(to_scan_order(x, dim=1), dim=1), x)
