"""Do batches made ahead of time come in the sampler's order, and are frames and pairs what the network reads?"""

import dataclasses
import wave
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from rotrnn_core.catalogue import TASKS
from rotrnn_core.config import ModelConfig, RotRNNConfig, RunConfig
from rotrnn_core.model import network_for
from rotrnn_core.records import Checkpoint, Evaluation, Finished, Loss
from rotrnn_core.tasks import Batch, Loader, Sampler, Sequences, batch_of, batches_in_order, release
from rotrnn_core.tasks.dataset import Scale, joined, of_one_length
from rotrnn_core.tasks.registry import RELEASES
from rotrnn_core.training import train

Write = Callable[[str, Path], Path]
Make = Callable[..., RunConfig]


@pytest.fixture
def sequences() -> Sequences:
    """Fifty sequences of lengths 1 to 30; the label of each is its index."""
    rng = np.random.default_rng(0)
    rows = [rng.integers(3, 18, size=rng.integers(1, 31)).astype(np.uint8) for _ in range(50)]
    return joined(rows, list(range(50)))


def same(one: Batch, other: Batch) -> bool:
    return all(torch.equal(getattr(one, name), getattr(other, name)) for name in ("inputs", "lengths", "labels"))


@pytest.mark.parametrize("drawn", [0, 3, 17])
def test_a_loader_gives_the_samplers_batches_from_any_place(sequences: Sequences, drawn: int) -> None:
    loader = Loader(sequences, 8, seed=3)
    next(loader)
    loader.drawn = drawn
    expected = Sampler(sequences, 8, seed=3, drawn=drawn)
    for _ in range(12):
        assert same(next(loader), next(expected))
    assert loader.drawn == drawn + 12


def test_what_lies_ready_does_not_count_as_taken(sequences: Sequences) -> None:
    loader = Loader(sequences, 8, seed=3)
    next(loader)
    assert loader.drawn == 1


def test_frames_are_scaled_and_padded_with_zeros() -> None:
    frames = [np.full((length, 2), 7, dtype=np.int16) for length in (3, 1)]
    stored = dataclasses.replace(joined(frames, [0, 1]), scale=Scale(mean=(5.0, 7.0), deviation=(4.0, 2.0)))
    batch = batch_of(stored, np.array([0, 1]))
    assert batch.inputs.dtype == torch.float32
    assert batch.inputs.tolist() == [[[0.5, 0.0]] * 3, [[0.5, 0.0], [0.0, 0.0], [0.0, 0.0]]]


def test_sequences_of_one_length_need_no_masks_and_change_nothing() -> None:
    stored = of_one_length(np.random.default_rng(0).integers(0, 9, size=(6, 12, 1)).astype(np.uint8), np.arange(6))
    stored = dataclasses.replace(stored, scale=Scale((4.0,), (3.0,)))
    batch = batch_of(stored, np.arange(6))
    assert batch.cuts is None
    task = dataclasses.replace(TASKS["digits"], classes=6)
    model = ModelConfig(cell=RotRNNConfig(n_heads=2), d_model=4, d_state=8, bidirectional=True)
    network = network_for(model, task, torch.Generator().manual_seed(0)).double()
    torch.testing.assert_close(
        network(batch.inputs.double()), network(batch.inputs.double(), batch.lengths), rtol=1e-10, atol=1e-10
    )


def test_a_pair_lies_side_by_side_and_its_logits_depend_on_both() -> None:
    rng = np.random.default_rng(0)
    rows = [rng.integers(1, 200, size=length).astype(np.uint8) for length in (5, 9, 2, 3)]
    stored = joined(rows, [0, 1], documents=2)
    batch = batch_of(stored, np.array([1, 0]))
    assert batch.lengths.tolist() == [2, 3, 5, 9]
    assert batch.labels.tolist() == [1, 0]
    model = ModelConfig(cell=RotRNNConfig(n_heads=2), d_model=4, d_state=8)
    network = network_for(model, TASKS["retrieval"], torch.Generator().manual_seed(0)).eval()
    logits = network(batch.inputs, batch.lengths)
    assert logits.shape == (2, 2)
    for place in range(4):
        changed = batch.inputs.clone()
        changed[place, 0] += 1
        moved = (network(changed, batch.lengths) - logits).abs().amax(dim=1) > 0
        assert moved.tolist() == [place < 2, place >= 2]


def test_pairs_are_evaluated_once_each_shortest_first() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 30, size=22)
    stored = joined([np.ones(length, dtype=np.uint8) for length in lengths], list(range(11)), documents=2)
    batches = list(batches_in_order(stored, 4))
    assert sorted(label for batch in batches for label in batch.labels.tolist()) == list(range(11))
    longest = [pair.max().item() for batch in batches for pair in batch.lengths.view(-1, 2)]
    assert longest == sorted(longest)


def tiny(task: dict[str, object], steps: int = 2) -> RunConfig:
    return RunConfig.from_dict(
        {
            "task": task,
            "model": {"cell": {"name": "rotrnn", "n_heads": 2}, "d_model": 4, "d_state": 8, "n_layers": 1},
            "training": {"steps": steps, "batch_size": 2, "warmup_steps": 0, "log_every": 1, "device": "cpu"},
            "probe": {"every": 10, "batch_size": 2},
        }
    )


@pytest.mark.parametrize("name", ["text", "retrieval", "speech-commands", "image-colour"])
def test_official_data_go_from_their_files_to_a_result(name: str, tmp_path: Path, write_official: Write) -> None:
    official = write_official(name, tmp_path / "official")
    if name == "speech-commands":
        for path in official.rglob("*.wav"):  # recordings of 8,000 samples
            with wave.open(str(path)) as sound:
                kind, content = sound.getparams(), sound.readframes(8000)
            with wave.open(str(path), "wb") as sound:
                sound.setparams(kind)
                sound.writeframes(content)
    release.prepare(name, RELEASES[name], official, tmp_path / "data")
    config = tiny({"name": name, "train_size": 2, "validation_size": 2, "test_size": 2})
    records = list(train(config, data_dir=tmp_path / "data"))
    assert all(np.isfinite(record.loss) for record in records if isinstance(record, Loss))
    assert isinstance(records[-1], Finished)


def test_the_test_split_is_evaluated_once_by_the_network_that_validation_chose(
    small_run: Make, data_dir: Path, tmp_path: Path
) -> None:
    config = small_run(training={"steps": 12, "evaluate_every": 1, "learning_rate": 0.1})
    records = list(train(config, data_dir=data_dir))
    validated = [r for r in records if isinstance(r, Evaluation) and r.split == "validation"]
    (tested,) = (r for r in records if isinstance(r, Evaluation) and r.split == "test")
    best = max(validated, key=lambda r: (r.accuracy, -r.step))
    assert tested.chosen_step == best.step
    assert tested.metrics()["test_chosen_step"] == best.step
    until = small_run(training={"steps": 12, "evaluate_every": 1, "learning_rate": 0.1, "checkpoint_every": 1})
    for record in train(until, data_dir=data_dir, checkpoint_dir=tmp_path):
        if isinstance(record, Checkpoint) and record.step == best.step:
            break
    (again,) = (
        r
        for r in train(until, data_dir=data_dir, resume_from=tmp_path / f"step-{best.step:08d}.pt")
        if isinstance(r, Evaluation) and r.split == "test"
    )
    assert again == tested
