"""Are checkpoints whole or not there, on a disk and in a store of objects, and does a full one end no training?"""

import dataclasses
import hashlib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
import torch

from rotrnn_core.config import RunConfig
from rotrnn_core.records import Checkpoint, CheckpointMissed, Finished, Loss, Record
from rotrnn_core.training import CheckpointUnusable, checkpoints, train

Make = Callable[..., RunConfig]
CONTENT = {"config": {"a": 1}, "weights": torch.arange(1000.0), "nested": {"x": [1, 2.5, None]}}


@pytest.fixture(params=["path", "file", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A folder in each kind of place."""
    yield {"path": str(tmp_path), "file": f"file://{tmp_path}", "memory": f"memory://{uuid.uuid4().hex}"}[request.param]
    fsspec.filesystem("memory").store.clear()


def read(path: str) -> bytes:
    with fsspec.open(path, "rb") as file:
        return bytes(file.read())


def test_what_is_saved_comes_back_and_is_what_its_sum_says(folder: str) -> None:
    made = checkpoints.save(folder, 7, CONTENT)
    assert made.path == f"{folder}/step-00000007.pt"
    assert (hashlib.sha256(read(made.path)).hexdigest(), len(read(made.path))) == (made.sha256, made.size_bytes)
    content = checkpoints.load(made.path, CONTENT["config"])  # type: ignore[arg-type]
    assert torch.equal(content["weights"], CONTENT["weights"])  # type: ignore[arg-type]
    assert (content["nested"], content["step"]) == (CONTENT["nested"], 7)


def test_the_last_two_are_kept_and_nothing_else_is_touched(folder: str) -> None:
    with fsspec.open(f"{folder}/notes.txt", "wb") as file:
        file.write(b"mine")
    for step in (5, 10, 15, 20):
        checkpoints.save(folder, step, CONTENT)
    store, place = fsspec.core.url_to_fs(folder)
    names = sorted(path.rpartition("/")[2] for path in store.ls(place, detail=False))
    assert names == ["notes.txt", "step-00000015.pt", "step-00000020.pt"]


@pytest.mark.parametrize("spoil", [lambda data: data[:-100], lambda data: b"", lambda data: b"not a checkpoint"])
def test_what_is_torn_is_refused(folder: str, spoil: Callable[[bytes], bytes]) -> None:
    path = checkpoints.save(folder, 1, CONTENT).path
    spoilt = spoil(read(path))
    with fsspec.open(path, "wb") as file:
        file.write(spoilt)
    with pytest.raises(CheckpointUnusable, match="step-00000001"):
        checkpoints.load(path, CONTENT["config"])  # type: ignore[arg-type]


def comparable(records: list[Record]) -> list[Record]:
    """Records without what no two runs share: speed and places."""
    same: list[Record] = []
    for record in records:
        if isinstance(record, Loss):
            same.append(dataclasses.replace(record, tokens_per_s=0.0))
        elif not isinstance(record, Checkpoint | CheckpointMissed):
            same.append(record)
    return same


def test_a_full_disk_costs_checkpoints_and_nothing_else(
    small_run: Make, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = small_run(model={"dropout": 0.2})
    whole = list(train(config, data_dir=data_dir, checkpoint_dir=tmp_path / "whole"))
    real, times = checkpoints.os.fsync, []

    def full_at_first(descriptor: Any) -> None:
        times.append(descriptor)
        if len(times) == 1:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(checkpoints.os, "fsync", full_at_first)
    found = list(train(config, data_dir=data_dir, checkpoint_dir=tmp_path / "full"))
    missed, *_ = (record for record in found if isinstance(record, Checkpoint | CheckpointMissed))
    assert isinstance(missed, CheckpointMissed)
    assert "No space left on device" in missed.reason
    assert isinstance(found[-1], Finished)
    assert comparable(found) == comparable(whole)
    kept = [record.step for record in found if isinstance(record, Checkpoint)]
    assert kept == [record.step for record in whole if isinstance(record, Checkpoint)][1:]
    assert not list((tmp_path / "full").glob(".step-*"))


@pytest.mark.parametrize("cell", [{"name": "rotrnn", "n_heads": 2}, {"name": "lru"}])
def test_training_goes_on_bit_for_bit_from_a_store_of_objects(small_run: Make, data_dir: Path, cell: Any) -> None:
    config = small_run(model={"cell": cell, "dropout": 0.3})
    folder = f"memory://{uuid.uuid4().hex}"
    whole = list(train(config, data_dir=data_dir, checkpoint_dir=folder))
    first = next(record for record in whole if isinstance(record, Checkpoint))
    torch.manual_seed(99)
    cut = f"{folder}-cut"
    for record in train(config, data_dir=data_dir, checkpoint_dir=cut):
        if isinstance(record, Checkpoint):
            break
    resumed = list(train(config, data_dir=data_dir, resume_from=f"{cut}/step-{first.step:08d}.pt"))
    assert comparable(resumed[1:]) == comparable(whole[whole.index(first) + 1 :])
