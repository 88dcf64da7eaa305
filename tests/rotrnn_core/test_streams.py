"""Does a cell give the same however it is cut and whichever backend scans, and is a wish refused with its reason?"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from rotrnn_core.config import ConfigError, RunConfig
from rotrnn_core.layers import LRU, S5, DiagonalCell, RotRNN, use_backend
from rotrnn_core.ops.scan import backend_for
from rotrnn_core.records import Loss, Started
from rotrnn_core.training import train

TIME = 23
BACKENDS = ["reference", "torch", "numba"]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def cells() -> list[DiagonalCell]:
    built: list[DiagonalCell] = [
        RotRNN(5, 12, 2, generator=generator()),
        RotRNN(5, 12, 2, first_step="authors", generator=generator()),
        LRU(5, 12, generator=generator()),
        S5(5, 12, generator=generator()),
    ]
    return [cell.double() for cell in built]


CELLS = cells()


def sequence(time: int = TIME) -> Tensor:
    return torch.randn(3, time, 5, generator=generator(1), dtype=torch.float64)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("cuts", [[1], [22], [7, 8], list(range(1, TIME))])
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: type(cell).__name__)
def test_any_cut_of_a_sequence_gives_what_the_whole_gives(cell: DiagonalCell, cuts: list[int], backend: str) -> None:
    use_backend(cell, backend, torch.device("cpu"))  # type: ignore[arg-type]
    u = sequence().requires_grad_()
    weight = torch.randn(3, TIME, 5, generator=generator(2), dtype=torch.float64)
    inputs = [u, *cell.parameters()]
    whole = cell(u)
    wanted = torch.autograd.grad((whole * weight).sum(), inputs)
    stream, z, pieces = cell.stream(), None, []
    for piece in u.tensor_split(cuts, dim=1):
        y, z = stream.piece(piece, z)
        pieces.append(y)
    assert z is not None
    assert z.shape == (3, 12)
    found = torch.cat(pieces, dim=1)
    torch.testing.assert_close(found, whole, rtol=0, atol=1e-12)
    for one, other in zip(torch.autograd.grad((found * weight).sum(), inputs), wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: type(cell).__name__)
def test_steps_of_a_stream_give_what_its_pieces_give(cell: DiagonalCell) -> None:
    u, stream = sequence(), cell.stream()
    whole, last = stream.piece(u)
    z, outputs = None, []
    for now in u.unbind(1):
        y, z = stream.step(now, z)
        outputs.append(y)
    torch.testing.assert_close(torch.stack(outputs, dim=1), whole, rtol=0, atol=1e-12)
    torch.testing.assert_close(z, last, rtol=0, atol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_pieces_of_unequal_length_hand_on_the_state_of_their_last_valid_step(backend: str) -> None:
    cell, u, lengths = CELLS[0], sequence(), torch.tensor([TIME, 4, 1])
    use_backend(cell, backend, torch.device("cpu"))  # type: ignore[arg-type]
    stream = cell.stream()
    _, together = stream.piece(u, lengths=lengths)
    _, further = stream.piece(u.flip(1), together, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone = stream.piece(u[row : row + 1, :length])[1]
        torch.testing.assert_close(together[row : row + 1], alone, rtol=0, atol=1e-12)
        alone = stream.piece(u.flip(1)[row : row + 1, :length], alone)[1]
        torch.testing.assert_close(further[row : row + 1], alone, rtol=0, atol=1e-12)


def test_single_precision_streams_keep_their_digits_over_a_long_memory() -> None:
    cell = LRU(3, 8, r_min=0.9999, r_max=0.99995, generator=generator())
    u = torch.randn(1, 4_000, 3, generator=generator(1))
    with torch.no_grad():
        stream, z = cell.stream(), None
        for now in u.unbind(1):
            _, z = stream.step(now, z)
        exact = cell.double().stream().piece(u.double())[1]
    assert z is not None
    assert (z - exact).norm() < 1e-5 * exact.norm()


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("lengths", [None, torch.tensor([TIME, 4, 1])])
def test_every_backend_gives_the_same_outputs_states_and_gradients(bidirectional: bool, lengths: Tensor | None) -> None:
    cell = RotRNN(5, 12, 2, bidirectional=bidirectional, generator=generator()).double()
    found = []
    for backend in BACKENDS:
        use_backend(cell, backend, torch.device("cpu"))  # type: ignore[arg-type]
        u = sequence().requires_grad_()
        y, states = cell(u, lengths), cell.states(u, lengths)
        gradients = torch.autograd.grad(y.square().sum() + states.square().sum(), [u, *cell.parameters()])
        found.append([y, states, *gradients])
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            torch.testing.assert_close(same, one, rtol=1e-10, atol=1e-10)


def test_a_run_scans_as_asked_and_says_how(small_run: Callable[..., RunConfig], data_dir: Path) -> None:
    found = {}
    for wanted in ("auto", "torch"):
        config = small_run(training={"backend": wanted, "steps": 3, "evaluate_every": 3})
        started, *rest = train(config, data_dir=data_dir)
        assert isinstance(started, Started)
        found[started.environment["scan_backend"]] = [record.loss for record in rest if isinstance(record, Loss)]
    assert found["numba"] == pytest.approx(found["torch"], rel=1e-4)


@pytest.mark.parametrize(
    ("wanted", "device", "remedy"),
    [
        ("numba", "cuda", "it runs on the CPU and the device is cuda"),
        ("triton", "cpu", "triton|it runs on CUDA and the device is cpu"),
    ],
)
def test_a_backend_that_cannot_run_is_refused_with_the_reason(wanted: str, device: str, remedy: str) -> None:
    with pytest.raises(ConfigError, match=rf"training\.backend is '{wanted}': .*({remedy})"):
        backend_for(wanted, device)  # type: ignore[arg-type]


def test_an_unknown_backend_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"training\.backend is 'cuda'"):
        RunConfig.from_dict({"training": {"backend": "cuda"}})


def test_what_reads_backwards_cannot_be_streamed() -> None:
    with pytest.raises(ValueError, match="bidirectional is True"):
        RotRNN(5, 12, 2, bidirectional=True).stream()


WITHOUT = """
import sys
sys.modules["numba"] = sys.modules["triton"] = None
import torch
from rotrnn_core.checks import ConfigError
from rotrnn_core.layers import RotRNN
from rotrnn_core.ops.scan import backend_for
RotRNN(4, 8, 2)(torch.randn(2, 9, 4)).sum().backward()
assert backend_for("auto", "cpu") == backend_for("auto", "cuda") == "torch"
try:
    backend_for("numba", "cpu")
except ConfigError as error:
    print(error)
assert "torch._dynamo" not in sys.modules
"""


def test_the_core_runs_without_numba_and_triton_and_names_what_is_missing() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    assert "numba is not installed" in done.stdout
