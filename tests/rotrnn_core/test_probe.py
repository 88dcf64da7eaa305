"""Are the hidden norms what they say they are?"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from rotrnn_core.config import RunConfig
from rotrnn_core.model import Network
from rotrnn_core.records import HiddenNorms
from rotrnn_core.tasks import Batch, load
from rotrnn_core.training import train
from rotrnn_core.training.probe import Probe, log_spaced


def batch() -> Batch:
    tokens = torch.randint(3, 18, (3, 9), generator=torch.Generator().manual_seed(0))
    return Batch(tokens, torch.tensor([9, 4, 6]), torch.zeros(3, dtype=torch.long))


def network(config: RunConfig) -> Network:
    return Network(config.model, tokens=18, classes=10, generator=torch.Generator().manual_seed(1))


def valid(values: torch.Tensor) -> torch.Tensor:
    return torch.cat([values[0, :9], values[1, :4], values[2, :6]])


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(("cell", "n_heads"), [({"name": "rotrnn", "n_heads": 2}, 2), ("lru", 4)])
def test_the_numbers_are_those_of_a_direct_computation(
    small_run: Callable[..., RunConfig], cell: object, n_heads: int, bidirectional: bool
) -> None:
    net = network(small_run(model={"cell": cell, "bidirectional": bidirectional}))
    probe = Probe(batch(), positions=4)
    per_head, whole, relative = probe.measure(net, step=0)
    for layer, states in enumerate(net.eval().states(batch().inputs, batch().lengths)):
        numbers = states.detach().double()
        heads = numbers.view(3, 9, n_heads, -1).square().sum(-1).sqrt().mean(-1)
        length = numbers.square().sum(-1).sqrt()
        for record, wanted in ((per_head, heads), (whole, length), (relative, length / valid(length).mean())):
            counted = valid(wanted).numpy()
            assert record.mean[layer] == pytest.approx(counted.mean(), rel=1e-12)
            assert record.deviation[layer] == pytest.approx(counted.std(), rel=1e-9)
            assert record.minimum[layer] == pytest.approx(counted.min(), rel=1e-12)
            assert record.maximum[layer] == pytest.approx(counted.max(), rel=1e-12)
            assert record.non_finite[layer] == 0
            assert probe.positions == (1, 2, 4, 9)
            profile = [wanted[:, 0].mean(), wanted[:, 1].mean(), wanted[:, 3].mean(), wanted[0, 8]]
            assert record.profile[layer] == pytest.approx([float(value) for value in profile], rel=1e-7)


def test_relative_is_one_before_training_and_keeps_its_unit(small_run: Callable[..., RunConfig]) -> None:
    net, probe = network(small_run()), Probe(batch(), positions=4)
    before = probe.measure(net, step=0)
    assert before[2].mean == (1.0, 1.0)
    with torch.no_grad():
        for block in net.blocks:
            block.norm.weight.mul_(2)  # type: ignore[union-attr, operator]
            block.norm.bias.mul_(2)  # type: ignore[union-attr, operator]
    after = probe.measure(net, step=1)
    assert after[2].mean[0] == pytest.approx(after[1].mean[0] / before[1].mean[0])
    assert after[2].mean[0] == pytest.approx(2.0, rel=1e-6)


def test_measuring_changes_nothing(small_run: Callable[..., RunConfig]) -> None:
    net, probe = network(small_run()).train(), Probe(batch(), positions=4)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    assert probe.measure(net, step=0) != []
    assert probe.measure(net, step=0) == probe.measure(net, step=0)
    assert net.training
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


def test_values_that_are_not_finite_are_counted_and_shown(small_run: Callable[..., RunConfig]) -> None:
    net, probe = network(small_run()), Probe(batch(), positions=4)
    probe.measure(net, step=0)
    with torch.no_grad():
        net.blocks[1].cell.B[0, 0, 0] = torch.nan  # type: ignore[union-attr, index]
    for record in probe.measure(net, step=1):
        assert record.non_finite == (0, 19)
        assert np.isfinite(record.mean[0])
        assert np.isnan([record.mean[1], record.minimum[1], *record.profile[1]]).all()


@pytest.mark.parametrize(("longest", "most"), [(1, 64), (2, 64), (10, 64), (200, 64), (16_384, 64), (2000, 5)])
def test_positions_are_distinct_ordered_and_reach_both_ends(longest: int, most: int) -> None:
    positions = log_spaced(longest, most)
    assert positions == tuple(sorted(set(positions)))
    assert positions[0] == 1
    assert positions[-1] == longest
    assert len(positions) <= most


def traces(config: RunConfig, data_dir: Path) -> Iterator[HiddenNorms]:
    return (record for record in train(config, data_dir=data_dir) if isinstance(record, HiddenNorms))


def test_the_probe_batch_depends_on_the_data_and_not_on_the_runs_seed(
    small_run: Callable[..., RunConfig], data_dir: Path
) -> None:
    config = small_run()
    first = load(config.task, data_dir).validation.sequence(0)
    assert first.tobytes() == load(small_run(training={"seed": 5}).task, data_dir).validation.sequence(0).tobytes()


def test_norms_before_training_have_the_scale_that_they_keep(
    small_run: Callable[..., RunConfig], data_dir: Path
) -> None:
    """Running statistics are real before the first step, so that the start is not an artefact of batch norm."""
    still = small_run(
        model={"dropout": 0.0},
        training={"learning_rate": 1e-12, "recurrence_learning_rate": 1e-12, "final_learning_rate": 0.0, "steps": 40},
    )
    relative = [record for record in traces(still, data_dir) if record.statistic == "relative"]
    assert relative[0].mean == (1.0, 1.0)
    assert relative[-1].mean == pytest.approx((1.0, 1.0), rel=0.1)
