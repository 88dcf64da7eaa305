"""Do the cells obey the equations and laws that they are named after?"""

import math

import pytest
import torch
from torch import Tensor

from rotrnn_core.layers import LRU, DiagonalCell, RotRNN
from rotrnn_core.ops.normaliser import head_norm, stationary_scale
from rotrnn_core.ops.rotation import rotation_from

CLOSE = {"rtol": 0.0, "atol": 1e-11}
D_MODEL, D_STATE, N_HEADS = 5, 12, 2


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rotrnn(**options: object) -> RotRNN:
    cell = RotRNN(D_MODEL, D_STATE, N_HEADS, generator=generator(), **options)  # type: ignore[arg-type]
    return cell.double()


def lru(**options: object) -> LRU:
    return LRU(D_MODEL, D_STATE, generator=generator(), **options).double()  # type: ignore[arg-type]


def sequence(time: int, batch: int = 3, seed: int = 1) -> Tensor:
    return torch.randn(batch, time, D_MODEL, generator=generator(seed), dtype=torch.float64)


def every_cell(bidirectional: bool) -> list[DiagonalCell]:
    return [
        rotrnn(bidirectional=bidirectional),
        rotrnn(bidirectional=bidirectional, first_step="authors", init="ring"),
        lru(bidirectional=bidirectional),
        lru(bidirectional=bidirectional, normaliser="tied"),
    ]


CELLS = [*every_cell(False), *every_cell(True)]
FORWARD_CELLS = every_cell(False)


def turned(phases: Tensor) -> Tensor:
    """blockdiag(R(theta_1), R(theta_2), ..)."""
    blocks = [torch.stack([torch.stack([a.cos(), -a.sin()]), torch.stack([a.sin(), a.cos()])]) for a in phases.detach()]
    return torch.block_diag(*blocks)


def transition(cell: RotRNN, head: int) -> Tensor:
    """A_h = P Theta P^T."""
    P = rotation_from(cell.M)[head].detach()
    return P @ turned(cell.phases()[head]) @ P.mT


def impulse_energy(cell: DiagonalCell, time: int) -> Tensor:
    """E h_t^2 of every number of the state under white input, exactly: a sum over unit impulses, (time, state)."""
    impulses = torch.eye(time * D_MODEL, dtype=torch.float64).view(-1, time, D_MODEL)
    return cell.states(impulses).detach().square().sum(0)


@pytest.mark.parametrize("first_step", ["exact", "authors"])
def test_rotrnn_is_its_equation_written_out(first_step: str) -> None:
    cell = rotrnn(first_step=first_step)
    u = sequence(6)
    decay = torch.exp(-torch.exp(cell.gamma_log)).detach()
    outputs, states = [], []
    h = torch.zeros(3, N_HEADS, D_STATE // N_HEADS, dtype=torch.float64)
    for time in range(6):
        after = torch.empty_like(h)
        for head in range(N_HEADS):
            B = cell.B[head].detach()
            top = 1.0 if time == 0 and first_step == "exact" else 1 - decay[head] ** 2
            xi = torch.sqrt(top / torch.trace(B.mT @ B))
            after[:, head] = decay[head] * h[:, head] @ transition(cell, head).mT + xi * u[:, time] @ B.mT
        h = after
        states.append(h.flatten(1))
        outputs.append(h.flatten(1) @ cell.C.detach().mT + cell.D.detach() * u[:, time])
    torch.testing.assert_close(cell.states(u).detach(), torch.stack(states, dim=1), **CLOSE)
    torch.testing.assert_close(cell(u).detach(), torch.stack(outputs, dim=1), **CLOSE)


@pytest.mark.parametrize("normaliser", ["learned", "tied"])
def test_lru_is_its_equation_written_out(normaliser: str) -> None:
    cell = lru(normaliser=normaliser)
    u = sequence(6)
    eigenvalue = torch.exp(torch.complex(-torch.exp(cell.nu_log), torch.exp(cell.theta_log))).detach()
    if normaliser == "learned":
        with torch.no_grad():
            cell.gamma_log.add_(0.3)
        scale = torch.exp(cell.gamma_log).detach()
    else:
        scale = torch.sqrt(1 - eigenvalue.abs() ** 2)
    B = torch.complex(cell.B_re, cell.B_im).detach()
    C = torch.complex(cell.C_re, cell.C_im).detach()
    h = torch.zeros(3, D_STATE // 2, dtype=torch.complex128)
    for time in range(6):
        h = eigenvalue * h + scale * (u[:, time].to(torch.complex128) @ B.mT)
        y = (h @ C.mT).real + cell.D.detach() * u[:, time]
        torch.testing.assert_close(cell(u)[:, time].detach(), y, **CLOSE)
        torch.testing.assert_close(cell.states(u)[:, time].detach(), torch.view_as_real(h).flatten(1), **CLOSE)


@pytest.mark.parametrize("kind", ["rotrnn", "lru"])
def test_a_bidirectional_cell_is_two_cells_with_two_read_outs(kind: str) -> None:
    both = rotrnn(bidirectional=True) if kind == "rotrnn" else lru(bidirectional=True)
    one = rotrnn() if kind == "rotrnn" else lru()
    u = sequence(7)
    with torch.no_grad():
        for name, parameter in one.named_parameters():
            if not name.startswith("C"):
                parameter.copy_(getattr(both, name))
    forward, backward = one.states(u), one.states(u.flip(1)).flip(1)
    heads = [states.view(3, 7, one.n_heads, 1, one.d_head) for states in (forward, backward)]
    torch.testing.assert_close(both.states(u), torch.cat(heads, dim=3).flatten(2), **CLOSE)
    if isinstance(both, RotRNN):
        wanted = both.states(u) @ both.C.mT + both.D * u
    else:
        assert isinstance(both, LRU)
        re, im = (torch.cat([s[..., part::2] for s in (forward, backward)], dim=-1) for part in (0, 1))
        wanted = re @ both.C_re.mT - im @ both.C_im.mT + both.D * u
    torch.testing.assert_close(both(u), wanted, **CLOSE)


def test_an_lru_is_a_rotrnn_with_heads_of_two() -> None:
    channels = 4
    rot = RotRNN(D_MODEL, 2 * channels, channels, first_step="authors", generator=generator(3)).double()
    diagonal = LRU(D_MODEL, 2 * channels, generator=generator(4)).double()
    with torch.no_grad():
        diagonal.nu_log.copy_(rot.gamma_log)
        diagonal.theta_log.copy_(rot.theta_log.flatten())
        xi = stationary_scale(torch.exp(rot.gamma_log)) / head_norm(rot.B)
        diagonal.gamma_log.copy_(torch.log(xi))
        diagonal.B_re.copy_(rot.B[:, 0])
        diagonal.B_im.copy_(rot.B[:, 1])
        diagonal.C_re.copy_(rot.C[:, 0::2])
        diagonal.C_im.copy_(-rot.C[:, 1::2])
        diagonal.D.copy_(rot.D)
    u = sequence(20)
    torch.testing.assert_close(diagonal.states(u), rot.states(u), **CLOSE)
    torch.testing.assert_close(diagonal(u), rot(u), **CLOSE)


def test_a_pair_of_conjugates_is_a_rotation() -> None:
    decay, phase = 0.8, 1.1
    eigenvalue = torch.polar(torch.tensor(decay, dtype=torch.float64), torch.tensor(phase, dtype=torch.float64))
    U = torch.tensor([[1, 1], [-1j, 1j]], dtype=torch.complex128) / math.sqrt(2)
    both = U @ torch.diag(torch.stack([eigenvalue, eigenvalue.conj()])) @ U.mH
    rotation = decay * turned(torch.tensor([phase], dtype=torch.float64))
    torch.testing.assert_close(both, rotation.to(torch.complex128), **CLOSE)
    b = torch.randn(2, generator=generator(), dtype=torch.float64)
    pair = torch.complex(b[0], b[1])
    wanted = math.sqrt(2) * b.to(torch.complex128)
    torch.testing.assert_close(U @ torch.stack([pair, pair.conj()]), wanted, **CLOSE)


def test_a_wide_head_is_conjugate_pairs_with_one_modulus_and_one_normaliser() -> None:
    wide = rotrnn(first_step="authors")
    with torch.no_grad():
        wide.M.zero_()
    narrow = LRU(D_MODEL, D_STATE).double()
    pairs = D_STATE // N_HEADS // 2
    with torch.no_grad():
        narrow.nu_log.copy_(wide.gamma_log.repeat_interleave(pairs))
        narrow.theta_log.copy_(wide.theta_log.flatten())
        narrow.gamma_log.copy_(torch.log(wide.input_scale()).repeat_interleave(pairs))
        narrow.B_re.copy_(wide.B.flatten(0, 1)[0::2])
        narrow.B_im.copy_(wide.B.flatten(0, 1)[1::2])
    u = sequence(9)
    torch.testing.assert_close(narrow.states(u), wide.states(u), **CLOSE)


def test_the_rotation_p_changes_no_function_only_its_parameters() -> None:
    cell = rotrnn()
    plain = rotrnn()
    P = rotation_from(cell.M)
    with torch.no_grad():
        plain.M.zero_()
        plain.B.copy_(P.mT @ cell.B)
        plain.C.copy_(torch.einsum("mhi,hij->mhj", cell.C.view(D_MODEL, N_HEADS, -1), P).flatten(1))
    u = sequence(8)
    torch.testing.assert_close(plain(u), cell(u), **CLOSE)
    torch.testing.assert_close(plain.states(u).norm(dim=-1), cell.states(u).norm(dim=-1), **CLOSE)
    torch.testing.assert_close(plain.input_scale(), cell.input_scale(), **CLOSE)


def test_the_transition_is_orthogonal_with_determinant_one_and_its_powers_turn_the_phases() -> None:
    cell = rotrnn()
    for head in range(N_HEADS):
        A = transition(cell, head)
        P = rotation_from(cell.M)[head].detach()
        torch.testing.assert_close(A @ A.mT, torch.eye(len(A), dtype=torch.float64), **CLOSE)
        torch.testing.assert_close(torch.linalg.det(A), torch.ones((), dtype=torch.float64), **CLOSE)
        fifth = P @ turned(5 * cell.phases()[head]) @ P.mT
        torch.testing.assert_close(torch.linalg.matrix_power(A, 5), fifth, **CLOSE)


@pytest.mark.parametrize("init", ["log-uniform", "ring"])
@pytest.mark.parametrize("first_step", ["exact", "authors"])
def test_white_input_gives_rotrnn_the_length_that_its_theory_says(first_step: str, init: str) -> None:
    cell = rotrnn(first_step=first_step, init=init)
    time = 7
    energy = impulse_energy(cell, time).view(time, N_HEADS, -1).sum(-1)
    decay = torch.exp(-torch.exp(cell.gamma_log)).detach()
    steps = torch.arange(1, time + 1, dtype=torch.float64).unsqueeze(-1)
    wanted = torch.ones(time, N_HEADS, dtype=torch.float64) if first_step == "exact" else 1 - decay ** (2 * steps)
    torch.testing.assert_close(energy, wanted, **CLOSE)


def test_white_input_gives_a_tied_lru_the_length_that_its_theory_says() -> None:
    cell = lru(normaliser="tied")
    time = 7
    energy = impulse_energy(cell, time).view(time, -1, 2).sum(-1)
    modulus = torch.exp(-torch.exp(cell.nu_log)).detach()
    steps = torch.arange(1, time + 1, dtype=torch.float64).unsqueeze(-1)
    input_energy = (cell.B_re.square() + cell.B_im.square()).sum(-1).detach()
    torch.testing.assert_close(energy, (1 - modulus ** (2 * steps)) * input_energy, **CLOSE)


def test_a_learned_lru_starts_as_a_tied_one() -> None:
    u = sequence(9)
    torch.testing.assert_close(lru(normaliser="learned")(u), lru(normaliser="tied")(u), rtol=0, atol=1e-5)


def test_lru_moduli_start_uniform_on_the_ring() -> None:
    r_min, r_max = 0.3, 0.95
    cell = LRU(1, 200_000, r_min=r_min, r_max=r_max, max_phase=2.0, generator=generator())
    modulus = torch.exp(-torch.exp(cell.nu_log)).detach().double()
    gain = 1 / (1 - modulus**2)
    wanted = math.log((1 - r_min**2) / (1 - r_max**2)) / (r_max**2 - r_min**2)
    assert abs(gain.mean() - wanted) < 4 * gain.std() / math.sqrt(len(gain))
    assert r_min < modulus.min()
    assert modulus.max() < r_max
    phase = torch.exp(cell.theta_log).detach()
    assert abs(phase.mean() - 1.0) < 4 * phase.std() / math.sqrt(len(phase))


@pytest.mark.parametrize("init", ["log-uniform", "ring"])
def test_rotrnn_decays_start_within_their_bounds(init: str) -> None:
    cell = RotRNN(4, 4000, 2000, init=init, decay_min=0.5, decay_max=0.99, max_phase=1.0, generator=generator())  # type: ignore[arg-type]
    decay = torch.exp(-torch.exp(cell.gamma_log)).detach()
    assert 0.5 <= decay.min() < 0.52
    assert 0.985 < decay.max() <= 0.99
    assert cell.phases().min() > 0
    assert 0.99 < cell.phases().max() <= 1.0
    assert ("theta" if init == "ring" else "theta_log") in dict(cell.named_parameters())


@pytest.mark.parametrize("cell", FORWARD_CELLS, ids=lambda cell: type(cell).__name__)
def test_one_step_at_a_time_gives_what_the_whole_sequence_gives(cell: DiagonalCell) -> None:
    u = sequence(9)
    whole, states = cell(u), cell.states(u)
    h = None
    for time in range(9):
        y, h = cell.step(u[:, time], h)
        torch.testing.assert_close(y, whole[:, time], **CLOSE)
        torch.testing.assert_close(h, states[:, time], **CLOSE)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{type(cell).__name__}-{cell.directions}")
def test_a_padded_batch_gives_each_sequence_what_it_gets_alone(cell: DiagonalCell) -> None:
    u = sequence(8)
    lengths = torch.tensor([8, 3, 1])
    for row, length in enumerate(lengths.tolist()):
        u[row, length:] = math.nan
    outputs, states = cell(u, lengths), cell.states(u, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone = u[row : row + 1, :length]
        torch.testing.assert_close(outputs[row : row + 1, :length], cell(alone), **CLOSE)
        torch.testing.assert_close(states[row : row + 1, :length], cell.states(alone), **CLOSE)
        assert outputs[row, length:].eq(0).all()
        assert states[row, length:].eq(0).all()
    gradients = torch.autograd.grad(outputs.square().sum(), list(cell.parameters()))
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_a_bidirectional_cell_refuses_to_step() -> None:
    with pytest.raises(ValueError, match="bidirectional is True"):
        rotrnn(bidirectional=True).step(sequence(1)[:, 0])


def test_a_head_without_input_keeps_a_zero_state_and_finite_gradients() -> None:
    cell = rotrnn()
    with torch.no_grad():
        cell.B[0].zero_()
    u = sequence(5)
    assert cell.states(u)[..., : D_STATE // N_HEADS].eq(0).all()
    cell(u).square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in cell.parameters())


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_matrix_that_is_not_finite_shows_as_nan_in_its_head_alone(bad: float) -> None:
    cell = rotrnn()
    with torch.no_grad():
        cell.M[1, 0, 1] = bad
    states = cell.states(sequence(4)).view(3, 4, N_HEADS, -1)
    assert states[:, :, 1].isnan().all()
    assert states[:, :, 0].isfinite().all()


def test_the_normaliser_is_exact_and_smooth_where_the_decay_is_almost_one() -> None:
    nu = torch.tensor([1e-12, 1e-3, 1.0], dtype=torch.float64, requires_grad=True)
    scale = stationary_scale(nu)
    assert abs(scale[0].item() / math.sqrt(2e-12) - 1) < 1e-9
    (gradient,) = torch.autograd.grad(scale.sum(), nu)
    assert gradient.isfinite().all()


def test_the_trained_path_holds_no_complex_number() -> None:
    for cell in CELLS:
        assert not any(parameter.is_complex() for parameter in cell.parameters())
        form = cell.eigenform()
        assert not any(tensor.is_complex() for tensor in (form.drive, form.read, form.decay, form.phase))


@pytest.mark.parametrize(
    ("build", "value"),
    [
        (lambda: RotRNN(4, 10, 4), "10"),
        (lambda: RotRNN(4, 8, 2, decay_min=0.0), "0.0"),
        (lambda: RotRNN(4, 8, 2, decay_min=0.9999), "0.9999"),
        (lambda: RotRNN(0, 8, 2), "0"),
        (lambda: LRU(4, 7), "7"),
        (lambda: LRU(4, 8, r_min=0.995), "0.995"),
        (lambda: lru()(torch.zeros(1, 3, 4, dtype=torch.float64)), "(1, 3, 4)"),
    ],
)
def test_what_cannot_be_right_is_refused_with_the_value(build: object, value: str) -> None:
    with pytest.raises(ValueError) as caught:
        build()  # type: ignore[operator]
    assert value in str(caught.value)
