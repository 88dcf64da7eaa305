"""Do the numbers hold where they usually go wrong: late times, long memory, empty parameters, low precision?"""

import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import rotrnn_core.layers.eigenform
from rotrnn_core.cells import CELLS
from rotrnn_core.config import ModelConfig
from rotrnn_core.layers import LRU, S5, DiagonalCell, RotRNN
from rotrnn_core.model import Network
from rotrnn_core.ops.complex import Complex
from rotrnn_core.ops.diagonal_kernel import kernel_from_two_levels
from rotrnn_core.ops.normaliser import stationary_scale
from rotrnn_core.ops.scan import scan

NEAR_1 = 1e-7
"""How far below 1 the decay lies."""


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small_network(name: str) -> Network:
    config = ModelConfig(cell=CELLS[name](), d_model=8, d_state=16, n_layers=1)
    return Network(config, tokens=5, classes=3, generator=generator())


def small_batch() -> tuple[Tensor, Tensor]:
    return torch.randint(5, (2, 9), generator=generator(1)), torch.tensor([9, 4])


def remembering(cell: DiagonalCell) -> DiagonalCell:
    """The cell with every decay within 1e-7 of 1."""
    with torch.no_grad():
        if isinstance(cell, RotRNN):
            cell.gamma_log.fill_(math.log(NEAR_1))
        elif isinstance(cell, LRU):
            cell.nu_log.fill_(math.log(NEAR_1))
        elif isinstance(cell, S5):
            cell.Lambda_re.copy_(-NEAR_1 / torch.exp(cell.log_step))
    return cell


def diagonal_cells() -> Iterator[DiagonalCell]:
    yield RotRNN(1, 4, 1, generator=generator())
    yield LRU(1, 4, generator=generator())
    yield LRU(1, 4, normaliser="tied", generator=generator())
    yield S5(1, 4, generator=generator())


@pytest.mark.parametrize("time", [16_384, 131_072])
def test_phases_hold_at_late_times_in_float32(time: int) -> None:
    decay = torch.full((2,), 1 - NEAR_1, dtype=torch.float64)
    phase = torch.tensor([6.28, 0.7], dtype=torch.float64)
    impulse = torch.zeros(1, time, 4)
    impulse[:, 0, :2] = 1
    found = scan(impulse, decay, phase)[0].double()
    times = torch.arange(time, dtype=torch.float64).unsqueeze(-1)
    exact = torch.cat([decay**times * torch.cos(phase * times), decay**times * torch.sin(phase * times)], dim=-1)
    assert (found - exact).abs().max() < 1e-4


@pytest.mark.parametrize("time", [16_384, 131_072])
def test_whole_layers_of_long_memory_hold_in_float32(time: int) -> None:
    u = torch.randn(1, time, 1, generator=generator(1))
    for cell in map(remembering, diagonal_cells()):
        with torch.no_grad():
            outputs, states = cell(u), cell.states(u)
            exact = cell.double()
            for found, expected in ((outputs, exact(u.double())), (states, exact.states(u.double()))):
                assert (found - expected).abs().max() < 1e-4 * expected.abs().max(), cell


@pytest.mark.parametrize("time", [16_384, 131_072])
def test_the_powers_of_a_kernel_hold_at_late_times(time: int) -> None:
    decay, phase = torch.tensor([[1 - NEAR_1]]).double(), torch.tensor([[6.28]])
    weight = Complex(torch.ones(1, 1), torch.zeros(1, 1))
    found = kernel_from_two_levels(decay, phase, weight, time)[0]
    times = torch.arange(time, dtype=torch.float64)
    exact = 2 * decay[0].double() ** times * torch.cos(phase[0].double() * times)
    assert (found - exact).abs().max() < 1e-9


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("index", range(4))
def test_a_decay_within_1e_7_of_1_has_finite_gradients(index: int, dtype: torch.dtype) -> None:
    cell = remembering(list(diagonal_cells())[index]).to(dtype)
    form = cell.eigenform()
    torch.testing.assert_close(1 - form.decay, torch.full_like(form.decay, NEAR_1), rtol=1e-5, atol=0)
    y = cell(torch.randn(2, 50, 1, generator=generator(1)).to(dtype))
    assert y.isfinite().all()
    y.square().sum().backward()
    for name, parameter in cell.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_normaliser_keeps_its_digits_near_a_decay_of_1(dtype: torch.dtype) -> None:
    nu = torch.tensor([1e-12, NEAR_1, 1e-3], dtype=dtype, requires_grad=True)
    scale = stationary_scale(nu)
    exact = [math.sqrt(-math.expm1(-2 * value)) for value in nu.tolist()]
    torch.testing.assert_close(scale, torch.tensor(exact, dtype=dtype))
    (gradient,) = torch.autograd.grad(scale.sum(), nu)
    slopes = [math.exp(-2 * value) / root for value, root in zip(nu.tolist(), exact, strict=True)]
    torch.testing.assert_close(gradient, torch.tensor(slopes, dtype=dtype))


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("first_step", ["exact", "authors"])
def test_a_rotrnn_without_input_matrix_is_silent_and_finite(first_step: str, bidirectional: bool) -> None:
    cell = RotRNN(3, 8, 2, first_step=first_step, bidirectional=bidirectional)  # type: ignore[arg-type]
    with torch.no_grad():
        cell.B[0].zero_()
    u = torch.randn(2, 7, 3, generator=generator())
    heads = cell.states(u).view(2, 7, 2, -1)
    assert not heads[:, :, 0].any()
    assert heads[:, :, 1].any()
    cell(u).square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in cell.parameters())


def test_a_rotrnn_without_basis_change_rotates_in_the_given_axes() -> None:
    cell = RotRNN(3, 8, 2, first_step="authors", generator=generator()).double()
    with torch.no_grad():
        cell.M.zero_()
    form = cell.eigenform()
    assert form.basis is not None
    assert torch.equal(form.basis, torch.eye(4, dtype=torch.float64).expand(2, 4, 4))
    cell(torch.randn(2, 7, 3, generator=generator(1), dtype=torch.float64)).square().sum().backward()
    assert cell.M.grad is not None
    assert cell.M.grad.isfinite().all()
    assert cell.M.grad.any()


class Watched(TorchDispatchMode):
    """Remembers, for each operator that ran, the dtypes that went in and came out."""

    def __init__(self) -> None:
        super().__init__()
        self.dtypes: dict[str, set[torch.dtype]] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        tensors = [leaf for leaf in tree_leaves((args, kwargs, out)) if isinstance(leaf, Tensor)]
        self.dtypes.setdefault(func.overloadpacket.__name__, set()).update(tensor.dtype for tensor in tensors)
        return out


@pytest.mark.parametrize("name", ["rotrnn", "lru", "s5"])
def test_autocast_keeps_expm_and_scan_in_float32_or_better(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    network, batch = small_network(name), small_batch()
    scanned: list[torch.dtype] = []

    def spy(drive: Tensor, decay: Tensor, phase: Tensor, *rest: Any, **options: Any) -> Tensor:
        scanned.extend([drive.dtype, decay.dtype, phase.dtype])
        return scan(drive, decay, phase, *rest, **options)

    monkeypatch.setattr(rotrnn_core.layers.eigenform, "scan", spy)
    expected = network(*batch)
    scanned.clear()
    with Watched() as watched, torch.autocast("cpu", dtype=torch.bfloat16):
        logits = network(*batch)
    assert scanned == [torch.float32, torch.float64, torch.float64]
    assert watched.dtypes.get("linalg_matrix_exp", {torch.float32}) == {torch.float32}
    assert torch.bfloat16 in watched.dtypes["mm"] | watched.dtypes["addmm"]
    torch.testing.assert_close(logits.float(), expected, rtol=0.05, atol=0.05)
    logits.float().square().sum().backward()
    for parameter in network.parameters():
        assert parameter.grad is not None
        assert parameter.grad.dtype == torch.float32
        assert parameter.grad.isfinite().all()


@pytest.mark.parametrize("name", CELLS)
def test_every_cell_runs_under_autocast_near_its_float32_result(name: str) -> None:
    network, batch = small_network(name), small_batch()
    expected = network(*batch)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = network(*batch)
    torch.testing.assert_close(logits.float(), expected, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("name", ["rotrnn", "lru", "s5"])
def test_no_operator_of_a_training_step_sees_a_complex_number(name: str) -> None:
    network = small_network(name)
    with Watched() as watched:
        network(*small_batch()).square().sum().backward()
    assert "mm" in watched.dtypes
    assert not {operator for operator, dtypes in watched.dtypes.items() if any(dtype.is_complex for dtype in dtypes)}


@pytest.mark.parametrize("name", CELLS)
def test_nothing_that_is_trained_or_kept_for_the_gradient_is_complex(name: str) -> None:
    network = small_network(name)
    kept: list[torch.dtype] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor.dtype)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        network(*small_batch()).square().sum().backward()
    assert kept
    assert not any(dtype.is_complex for dtype in kept)
    for parameter in network.parameters():
        assert parameter.grad is not None
        assert not parameter.is_complex()
        assert not parameter.grad.is_complex()


COMPILE = """
import sys
import torch
from rotrnn_core.config import RunConfig
from rotrnn_core.model import Network

batch = torch.arange(8).view(2, 4) % 5, torch.tensor([4, 3])


def outcome(network, run):
    network.zero_grad()
    logits = run(*batch)
    logits.square().sum().backward()
    return [logits, *(parameter.grad.clone() for parameter in network.parameters())]


for name, backend in (argument.split(":") for argument in sys.argv[1:]):
    cell = {"name": name} if name == "lru" else {"name": name, "n_heads": 2}
    model = RunConfig.from_dict({"model": {"cell": cell, "d_model": 4, "d_state": 8, "n_layers": 1}}).model
    network = Network(model, tokens=5, classes=3, generator=torch.Generator().manual_seed(0))
    compiled = torch.compile(network, fullgraph=True, backend=backend)
    for found, expected in zip(outcome(network, compiled), outcome(network, network), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("g++") is None and shutil.which("gcc") is None, reason="torch.compile needs a C++ compiler here"
)
@pytest.mark.parametrize("networks", [["rotrnn:inductor"], ["lru:aot_eager", "transformer:aot_eager"]], ids=" ".join)
def test_a_compiled_network_is_the_network(networks: list[str], tmp_path: Path) -> None:
    # A process of its own: the shape checks that the tests put around every function cannot be compiled.
    command = [sys.executable, "-c", COMPILE, *networks]
    environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, env=environment)
    assert done.returncode == 0, done.stderr
