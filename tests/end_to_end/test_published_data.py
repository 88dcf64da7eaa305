"""Do runs on published data wait until a worker has them, and then go through the whole service to their figures?"""

import time
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest

from rotrnn_core.tasks import release
from rotrnn_core.tasks.registry import RELEASES

SIZES = {"text": {"train_size": 8, "validation_size": 1, "test_size": 4}}
SIZES["speech-commands"] = {"train_size": 4, "validation_size": 2, "test_size": 3}
MODEL = {"cell": {"name": "rotrnn", "n_heads": 2}, "d_model": 4, "d_state": 4, "n_layers": 1}
TRAINING = {"steps": 2, "batch_size": 2, "warmup_steps": 0, "log_every": 1}

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("stack")]


@pytest.fixture
def api(stack: Any) -> Iterator[httpx2.Client]:
    headers = {"Authorization": f"Bearer {stack.token}"}
    with httpx2.Client(base_url=f"{stack.api_url}/v1", headers=headers, timeout=30) as client:
        yield client


def test_texts_and_recordings_wait_for_their_data_and_then_train(
    stack: Any, api: httpx2.Client, tmp_path: Path
) -> None:
    runs = {task: _submit(api, task) for task in SIZES}
    for task, run_id in runs.items():
        said = _until(lambda run_id=run_id: _run(api, run_id)["waits_for"], "word of what it waits for")
        assert f"rotbench data fetch {task}" in said
        _until(lambda run_id=run_id: "waits" in _happened(api, run_id), "event that says so")
    for task, write in (("text", _write_reviews), ("speech-commands", _write_recordings)):
        release.prepare(task, RELEASES[task], write(tmp_path / task), stack.data_dir / "datasets")
    for task, run_id in runs.items():
        done = _until(lambda run_id=run_id: _ended(api, run_id), f"the end of {task}")
        assert (done["status"], done["attempt"], done["waits_for"]) == ("succeeded", 1, None), done["reason"]
        assert sum(map(sum, done["confusion"])) == SIZES[task]["test_size"]
    assert _keys(api, runs["text"]).isdisjoint({"half_rate_test_accuracy"})
    assert {"test_accuracy", "half_rate_test_accuracy", "half_rate_test_loss"} <= _keys(api, runs["speech-commands"])
    (worker,) = api.get("/workers").json()["items"]
    assert set(SIZES) <= set(worker["data"])
    assert 0 < worker["resident_mib"] < worker["host_total_mib"]


def _submit(api: httpx2.Client, task: str) -> str:
    config = {"task": {"name": task, **SIZES[task]}, "model": MODEL, "training": TRAINING, "probe": {"batch_size": 2}}
    answer = api.post("/runs", json={"config": config})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def _run(api: httpx2.Client, run_id: str) -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"/runs/{run_id}").json()
    return found


def _ended(api: httpx2.Client, run_id: str) -> dict[str, Any] | None:
    found = _run(api, run_id)
    return found if found["finished_at"] else None


def _happened(api: httpx2.Client, run_id: str) -> set[str]:
    return {event["kind"] for event in api.get(f"/runs/{run_id}/history").json()["items"]}


def _keys(api: httpx2.Client, run_id: str) -> set[str]:
    return {series["key"] for series in api.get(f"/runs/{run_id}/metrics").json()["series"]}


def _until(look: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + 180
    while not (found := look()):
        assert time.monotonic() < deadline, f"no {what} within 180 s"
        time.sleep(0.1)
    return found


def _write_reviews(root: Path) -> Path:
    """Ten reviews to train and four to test, some of more than 4,096 bytes."""
    for split, count in (("train", 5), ("test", 2)):
        for opinion, word in (("pos", "fine "), ("neg", "dull ")):
            folder = root / split / opinion
            folder.mkdir(parents=True)
            for number in range(count):
                (folder / f"{number}_7.txt").write_text(word * (300 * number + 100))
    return root


def _write_recordings(root: Path) -> Path:
    """Three words, three recordings each: a tone of the word's own, some shorter than a second."""
    rng = np.random.default_rng(0)
    for place, word in enumerate(("bed", "cat", "dog")):
        (root / word).mkdir(parents=True)
        for number in range(3):
            time_s = np.arange(16_000 - 3_000 * number) / 16_000
            tone = 8_000 * np.sin(2 * np.pi * 200 * (place + 1) * time_s) + rng.normal(scale=100, size=len(time_s))
            with wave.open(str(root / word / f"{number}.wav"), "wb") as sound:
                sound.setparams((1, 2, 16_000, 0, "NONE", ""))
                sound.writeframes(tone.astype("<i2").tobytes())
    (root / "validation_list.txt").write_text("bed/0.wav\ncat/0.wav\n")
    (root / "testing_list.txt").write_text("bed/1.wav\ncat/1.wav\ndog/1.wav\n")
    return root
