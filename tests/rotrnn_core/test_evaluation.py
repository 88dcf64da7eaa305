"""Is a split judged exactly, example by example, and does a network at half the rate do what it did at the whole?"""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from rotrnn_core.config import CELLS, ModelConfig
from rotrnn_core.layers import LRU, S4D, S5, DiagonalCell, RotRNN
from rotrnn_core.model import Network
from rotrnn_core.tasks import batches_in_order
from rotrnn_core.tasks.dataset import Scale, Sequences, joined, of_one_length
from rotrnn_core.training import Control, train
from rotrnn_core.training.evaluation import MOST_CLASSES, Tally, tally
from rotrnn_core.training.half_rate import halve_rate

CPU = torch.device("cpu")


def _network(cell: str = "rotrnn", **sizes: Any) -> Network:
    options = {"rotrnn": {"n_heads": 4}, "lru": {}, "transformer": {"n_heads": 2}}.get(cell, {})
    config = ModelConfig(cell=CELLS[cell](**options), d_model=8, d_state=8 if cell != "s4d" else 32, n_layers=2)
    return Network(config, **({"channels": 1, "classes": 4} | sizes), generator=torch.Generator().manual_seed(0))


def _frames(count: int = 11, time: int = 12) -> Sequences:
    rng = np.random.default_rng(0)
    frames = rng.normal(size=(count, time, 1)).astype(np.float32)
    return of_one_length(frames, rng.integers(0, 4, count), Scale((0.0,), (1.0,)))


def test_a_tally_is_what_the_examples_say_one_by_one() -> None:
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 9, 11)
    rows = [rng.integers(1, 5, length).astype(np.uint8) for length in lengths]
    split = joined(rows, rng.integers(0, 4, 11).tolist())
    network = _network(channels=0, tokens=5).double().train()
    worked: list[bool] = []
    found = tally(network, split, batch_size=3, device=CPU, working=lambda: worked.append(network.training))
    assert network.training
    assert worked == [False] * 4, "a word after each batch, in evaluation mode"
    network.eval()
    counts, losses = np.zeros((4, 4), dtype=int), []
    for index, row in enumerate(rows):
        (logits,) = network(torch.from_numpy(row.astype(np.int64))[None])
        label = int(split.labels[index])
        counts[label, int(logits.argmax())] += 1
        losses.append(functional.cross_entropy(logits, torch.tensor(label)).item())
    assert found.counts == tuple(map(tuple, counts.tolist()))
    assert found.loss == pytest.approx(np.mean(losses), rel=1e-12)
    assert found.accuracy == pytest.approx(np.trace(counts) / 11)
    assert found.evaluation("test", 7, 5).metrics() == {
        "test_loss": found.loss,
        "test_accuracy": found.accuracy,
        "test_chosen_step": 5.0,
    }


def test_a_long_evaluation_says_again_and_again_that_it_is_at_work(small_run: Any, data_dir: Path) -> None:
    class Told(Control):
        words = 0

        def working(self) -> None:
            self.words += 1

    control = Told()
    told = [(type(record).__name__, control.words) for record in train(small_run(), data_dir=data_dir, control=control)]
    assert [words for name, words in told if name == "Evaluation"] == [2, 4, 6], "ten examples, eight at once"


def test_what_is_taken_for_what_is_said_where_classes_are_few() -> None:
    few, many = (Tally(0.0, tuple((1,) * classes for _ in range(classes))) for classes in (MOST_CLASSES, 36))
    assert [record.counts for record in few.confusion(3)] == [few.counts]
    assert many.confusion(3) == []


def test_at_half_the_rate_every_second_step_is_read_the_first_among_them() -> None:
    split, network = _frames(time=13), _network()
    (whole,) = batches_in_order(split, 20)
    found = tally(network, split, batch_size=20, device=CPU, every=2)
    network.eval()
    loss = functional.cross_entropy(network(whole.inputs[:, [0, 2, 4, 6, 8, 10, 12]]).double(), whole.labels)
    assert found.loss == pytest.approx(loss.item(), rel=1e-6)


@pytest.mark.parametrize("kind", [S5, S4D])
def test_a_step_that_lasts_twice_as_long_is_two_steps_of_one_input(kind: Any) -> None:
    """Zero-order hold is exact: at half the rate the states are every second one of an input that is held for two."""
    cell = kind(8, 16, generator=torch.Generator().manual_seed(0)).double()
    u = torch.randn(2, 9, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    held = cell.states(u.repeat_interleave(2, dim=1))[:, 1::2]
    network = torch.nn.Sequential(cell)
    assert halve_rate(network)
    torch.testing.assert_close(cell.states(u), held, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    "cell",
    [
        RotRNN(8, 16, 4, generator=torch.Generator().manual_seed(0)),
        RotRNN(8, 16, 4, init="ring", generator=torch.Generator().manual_seed(0)),
        LRU(8, 16, generator=torch.Generator().manual_seed(0)),
        LRU(8, 16, normaliser="tied", generator=torch.Generator().manual_seed(0)),
    ],
    ids=["rotrnn", "rotrnn-ring", "lru-learned", "lru-tied"],
)
def test_without_a_step_size_eigenvalues_are_squared_and_inputs_stay_normalised(cell: DiagonalCell) -> None:
    cell.double()
    before = copy.deepcopy(cell).eigenform()
    assert halve_rate(torch.nn.Sequential(cell))
    after = cell.eigenform()
    torch.testing.assert_close(after.decay, before.decay**2)
    torch.testing.assert_close(after.phase, 2 * before.phase)
    grown = (torch.sqrt((1 - before.decay**4) / (1 - before.decay**2))).repeat(2).unsqueeze(-1)
    torch.testing.assert_close(after.drive, before.drive * grown, rtol=1e-6, atol=1e-9)


def test_a_network_whose_steps_stand_for_no_time_is_left_as_it_is() -> None:
    network = _network("transformer")
    before = {name: value.clone() for name, value in network.state_dict().items()}
    assert not halve_rate(network)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
