"""Is every form of the scan the definition, whatever the size, direction, length or state, each gradient included?"""

import dataclasses
from collections.abc import Callable, Iterator

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from rotrnn_core.machine_code import private_folder
from rotrnn_core.ops.scan import projected, scan, scan_blocked, scan_compiled, scan_projected, scan_sequential, threads

pytest.importorskip("numba")
FEW = settings(
    max_examples=10, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
TIMES = st.one_of(st.integers(1, 9), st.sampled_from([63, 64, 65, 130, 257]))


@pytest.fixture(autouse=True)
def _poisoned() -> Iterator[None]:
    """Memory that nobody has written reads as NaN."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture
def on_threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@dataclasses.dataclass
class Problem:
    """A layer on random input; every tensor asks for a gradient."""

    u: Tensor
    drive: Tensor
    read: Tensor
    skip: Tensor
    decay: Tensor
    phase: Tensor
    gain: Tensor | None = None
    h0: Tensor | None = None
    lengths: Tensor | None = None

    def inputs(self) -> dict[str, Tensor]:
        return {name: x for name, x in vars(self).items() if x is not None and name != "lengths"}

    def fused(self) -> tuple[Tensor, Tensor]:
        return scan_projected(**vars(self))

    def defined(self) -> tuple[Tensor, Tensor]:
        """Each sequence alone, by the definition."""
        outputs, lasts = [], []
        for row, length in enumerate(self._lengths()):
            u = self.u[row : row + 1, :length]
            y, states = u * self.skip, []
            for direction, read in enumerate(self.read):
                drive = u @ self.drive.mT
                if self.gain is not None:
                    first = torch.arange(length) == (length - 1 if direction else 0)
                    drive = torch.where(first.unsqueeze(-1), drive * self.gain, drive)
                before = None if self.h0 is None else self.h0[row : row + 1]
                states.append(scan_sequential(drive, self.decay, self.phase, before, reverse=direction == 1))
                y = y + states[-1] @ read.mT
            outputs.append(torch.cat([y, y.new_zeros(1, self.u.shape[1] - length, y.shape[-1])], dim=1))
            lasts.append(states[0][:, -1])
        return torch.cat(outputs), torch.cat(lasts)

    def _lengths(self) -> list[int]:
        return [self.u.shape[1]] * len(self.u) if self.lengths is None else self.lengths.tolist()


def problem(
    batch: int = 3,
    time: int = 70,
    d_model: int = 5,
    pairs: int = 3,
    *,
    directions: int = 1,
    gain: bool = False,
    carried: bool = False,
    ragged: bool = False,
    dtype: torch.dtype = torch.float64,
) -> Problem:
    generator = torch.Generator().manual_seed(batch + time)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()

    def uniform(low: float, high: float) -> Tensor:
        spread = torch.rand(pairs, generator=generator, dtype=torch.float64)
        return (low + (high - low) * spread).requires_grad_()

    return Problem(
        u=normal(batch, time, d_model),
        drive=normal(2 * pairs, d_model),
        read=normal(directions, d_model, 2 * pairs),
        skip=normal(d_model),
        decay=uniform(0.05, 0.99),
        phase=uniform(-0.5, 6.5),
        gain=normal(2 * pairs) if gain else None,
        h0=normal(batch, 2 * pairs) if carried else None,
        lengths=torch.randint(1, time + 1, (batch,), generator=generator) if ragged else None,
    )


def outcome(layer: Problem, found: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
    """Outputs, last states and every gradient of a sum that weighs each number differently."""
    generator = torch.Generator().manual_seed(7)
    weights = [torch.randn(part.shape, generator=generator, dtype=torch.float64).to(part.dtype) for part in found]
    loss = sum((part * weight).sum() for part, weight in zip(found, weights, strict=True))
    gradients = torch.autograd.grad(loss, list(layer.inputs().values()))  # type: ignore[arg-type]
    parts = {"y": found[0].detach(), "last": found[1].detach()}
    return parts | dict(zip(layer.inputs(), gradients, strict=True))


def assert_same(found: dict[str, Tensor], wanted: dict[str, Tensor], relative: float) -> None:
    for name, value in wanted.items():
        error = (found[name].double() - value.double()).abs().max() / (1e-300 + value.double().abs().max())
        assert error <= relative, f"{name}: {error:.2e}"


@pytest.mark.parametrize(("dtype", "relative"), [(torch.float64, 1e-11), (torch.float32, 1e-4)])
@given(
    batch=st.integers(1, 9),
    time=TIMES,
    d_model=st.integers(1, 9),
    pairs=st.sampled_from([1, 3, 8, 33, 70]),
    ragged=st.booleans(),
    ends=st.sampled_from(["", "gain", "carried", "both ways", "both ways, gain"]),
)
@FEW
def test_the_fused_form_is_the_definition_with_every_gradient(
    dtype: torch.dtype, relative: float, batch: int, time: int, d_model: int, pairs: int, ragged: bool, ends: str
) -> None:
    layer = problem(
        batch,
        time,
        d_model,
        pairs,
        directions=2 if "both" in ends else 1,
        gain="gain" in ends,
        carried=ends == "carried",
        ragged=ragged,
        dtype=dtype,
    )
    assert_same(outcome(layer, layer.fused()), outcome(layer, layer.defined()), relative)


@pytest.mark.parametrize("form", [scan_blocked, scan_compiled])
@given(batch=st.integers(1, 9), time=TIMES, pairs=st.sampled_from([1, 2, 8, 33, 70]), carried=st.booleans())
@FEW
@pytest.mark.parametrize("reverse", [False, True])
def test_the_forms_that_keep_states_are_the_definition_with_every_gradient(
    form: Callable[..., Tensor], reverse: bool, batch: int, time: int, pairs: int, carried: bool
) -> None:
    layer = problem(batch, time, 2 * pairs, pairs, carried=carried)
    layer = Problem(**vars(layer) | {"drive": layer.drive.detach()})
    inputs = [layer.u, layer.decay, layer.phase, *([] if layer.h0 is None else [layer.h0])]
    results = []
    for run in (form, scan_sequential):
        states = run(layer.u, layer.decay, layer.phase, layer.h0, reverse=reverse)
        weight = torch.sin(torch.arange(states.numel())).view_as(states)
        gradients = torch.autograd.grad((states * weight).sum(), inputs, materialize_grads=True, allow_unused=True)
        results.append(dict(zip(["states", "u", "decay", "phase", "h0"], [states.detach(), *gradients], strict=False)))
    for name, value in results[1].items():
        torch.testing.assert_close(results[0][name], value, rtol=1e-10, atol=1e-10, msg=lambda text, n=name: n + text)


def test_gradients_of_the_compiled_forms_agree_with_finite_differences() -> None:
    layer = problem(2, 6, 2, 2, gain=True, directions=2, ragged=True)
    names = list(layer.inputs())

    def fused(*given: Tensor) -> Tensor:
        return scan_projected(**vars(layer) | dict(zip(names, given, strict=True)))[0]

    assert torch.autograd.gradcheck(fused, tuple(layer.inputs().values()))
    layer = problem(2, 5, 4, 2, carried=True)
    assert torch.autograd.gradcheck(scan_compiled, (layer.u, layer.decay, layer.phase, layer.h0))


def test_what_lies_in_the_padding_is_not_read() -> None:
    layer = problem(ragged=True, gain=True, directions=2)
    wanted = outcome(layer, layer.fused())
    assert layer.lengths is not None
    spoilt = layer.u.detach().clone()
    spoilt[torch.arange(spoilt.shape[1]) >= layer.lengths.unsqueeze(-1)] = torch.nan
    layer.u = spoilt.requires_grad_()
    found = outcome(layer, layer.fused())
    assert all(torch.equal(found[name], value) for name, value in wanted.items())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_same_call_gives_the_same_bits_on_one_thread_and_two(
    dtype: torch.dtype, on_threads: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = problem(3, 300, 24, 70, dtype=dtype, directions=2, ragged=True)
    alone = problem(1, 600, 64, 64, dtype=dtype, carried=True)
    for given_layer in (layer, alone):
        on_threads(1)
        wanted = outcome(given_layer, given_layer.fused())
        for count in (1, 2, 2):
            on_threads(count)
            found = outcome(given_layer, given_layer.fused())
            assert all(torch.equal(found[name], value) for name, value in wanted.items()), count
    monkeypatch.setattr(threads, "_team", lambda: threads._plain_team)
    found = outcome(alone, alone.fused())
    assert all(torch.equal(found[name], value) for name, value in wanted.items())


def test_strided_and_shared_inputs_are_read_as_they_are() -> None:
    layer = problem(4, 70, 6, 5, carried=True)
    wanted = outcome(layer, layer.fused())
    for name, x in layer.inputs().items():
        spread = torch.stack([x.detach(), torch.full_like(x, torch.nan)], dim=-1)
        setattr(layer, name, spread[..., 0].requires_grad_())
    turned = layer.u.detach().permute(2, 0, 1).contiguous().permute(1, 2, 0).requires_grad_()
    for u in (layer.u, turned):
        layer.u = u
        assert_same(outcome(layer, layer.fused()), wanted, 1e-14)
    layer.u = turned.detach()[:1].expand(4, -1, -1).requires_grad_()
    y, _ = layer.fused()
    torch.testing.assert_close(y, layer.defined()[0])
    (gradient,) = torch.autograd.grad(y.sum(), layer.u)
    torch.testing.assert_close(gradient, torch.autograd.grad(layer.defined()[0].sum(), layer.u)[0])


def test_float32_stays_within_1e_5_of_float64_late_in_a_long_memory() -> None:
    layer = problem(1, 16_384, 4, 6)
    with torch.no_grad():
        layer.decay.fill_(0.9999)
        layer.drive.mul_(0.014)
    exact = outcome(layer, layer.fused())
    for name, x in layer.inputs().items():
        if name not in ("decay", "phase"):
            setattr(layer, name, x.detach().float().requires_grad_())
    single = outcome(layer, layer.fused())
    for name, value in exact.items():
        assert (single[name] - value).norm() < 1e-5 * value.norm(), name


def test_a_sequence_of_131_072_steps_is_no_trouble() -> None:
    layer = problem(1, 131_072, 1, 1)
    y, last = layer.fused()
    states = scan_blocked(layer.u @ layer.drive.mT, layer.decay, layer.phase)
    torch.testing.assert_close(y, states @ layer.read[0].mT + layer.u * layer.skip, rtol=0, atol=1e-10)
    torch.testing.assert_close(last, states[:, -1], rtol=0, atol=1e-11)


def test_a_low_precision_drive_is_scanned_in_float32() -> None:
    layer = problem(2, 300, 6, 3)
    drive = layer.u.detach().bfloat16()
    wanted = scan_sequential(drive.float(), layer.decay, layer.phase).bfloat16()
    for backend in ("reference", "torch", "numba"):
        assert (scan(drive, layer.decay, layer.phase, backend=backend) == wanted).double().mean() > 0.99


def test_nothing_to_scan_and_a_second_gradient_are_refused() -> None:
    layer = problem()
    for u in (layer.u[:0], layer.u[:, :0]):
        with pytest.raises(ValueError, match="at least one sequence of at least one step"):
            Problem(**vars(layer) | {"u": u}).fused()
        with pytest.raises(ValueError, match="at least one sequence of at least one step"):
            scan_compiled(u @ layer.drive.mT, layer.decay, layer.phase)
    with pytest.raises(ValueError, match="one direction alone"):
        problem(directions=2, carried=True).fused()
    for y in (layer.fused()[0], scan_compiled(layer.u @ layer.drive.mT, layer.decay, layer.phase)):
        with pytest.raises(RuntimeError, match="no second gradient"):
            torch.autograd.grad(y.square().sum(), layer.decay, create_graph=True)


def test_states_that_are_kept_give_the_bits_of_states_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for layer in (
        problem(3, 300, 24, 70, dtype=torch.float32, directions=2, ragged=True, gain=True),
        problem(20, 130, 6, 129, dtype=torch.float32, carried=True, ragged=True),
    ):
        found = []
        for most in (0, 2**25):
            monkeypatch.setattr(projected, "_KEPT_BYTES", most)
            torch.full((2**20,), torch.nan)
            found.append(outcome(layer, layer.fused()))
        assert all(torch.equal(found[0][name], value) for name, value in found[1].items())


@pytest.mark.parametrize("keep", [False, True])
def test_the_operators_have_the_shapes_that_the_compiler_is_told(keep: bool) -> None:
    layer = problem(ragged=True, gain=True, directions=2)
    given_layer = [None if x is None else x.detach() for x in vars(layer).values()]
    found = torch.ops.rotbench.scan_projected(*given_layer, keep)
    on_meta = [None if x is None else x.to("meta") for x in given_layer]
    assert [x.shape for x in torch.ops.rotbench.scan_projected(*on_meta, keep)] == [x.shape for x in found]
    gradients = torch.ops.rotbench.scan_projected_backward(found[0], None, *found[2:], *given_layer)
    y, _last, *states = (x.to("meta") for x in found)
    told = torch.ops.rotbench.scan_projected_backward(y, None, *states, *on_meta)
    assert [(x.shape, x.dtype) for x in told] == [(x.shape, x.dtype) for x in gradients]


def test_machine_code_is_never_read_from_a_folder_that_others_can_write(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shared = str(tmp_path_factory.mktemp("shared"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: shared)
    folder = private_folder()
    assert folder is not None
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(folder.parent))
    assert private_folder() is None
