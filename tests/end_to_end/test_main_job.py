"""Does the main job work, from a sweep submitted over REST to the very traces that training produces?"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import torch

from rotrnn_core.config import RunConfig
from rotrnn_core.records import STATISTICS, HiddenNorms, Loss
from rotrnn_core.training import train

BASE = {
    "task": {"name": "listops-short", "train_size": 256, "validation_size": 64, "test_size": 64},
    "model": {"d_model": 16, "d_state": 16},
    "training": {"steps": 24, "batch_size": 8, "warmup_steps": 4, "log_every": 1, "evaluate_every": 12},
    "probe": {"every": 4, "batch_size": 8},
}
GRID = {
    "model.cell": [{"name": "rotrnn", "n_heads": 4}, {"name": "lru", "normaliser": "learned"}],
    "model.n_layers": [1, 2],
    "training.seed": [0, 1],
}

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("stack")]


@pytest.fixture
def api(stack: Any) -> Iterator[httpx2.Client]:
    headers = {"Authorization": f"Bearer {stack.token}"}
    with httpx2.Client(base_url=f"{stack.api_url}/v1", headers=headers, timeout=30) as client:
        yield client


def test_a_sweep_over_rest_trains_lives_and_is_read_back_as_the_trainer_said_it(stack: Any, api: httpx2.Client) -> None:
    sweep_id, runs = _train_a_sweep(api)
    for run in runs:
        _check_traces_to_the_last_bit(api, run, stack.data_dir / "datasets")
    _check_comparison(api, sweep_id)


def _train_a_sweep(api: httpx2.Client) -> tuple[str, list[dict[str, Any]]]:
    """Submit the two by two by two sweep, see metrics of a run while it runs, and wait for its end."""
    answer = api.post("/sweeps", json={"name": "two by two by two", "config": BASE, "grid": GRID})
    assert answer.status_code == 202, answer.text
    sweep = answer.json()
    assert sweep["total"] == 8

    seen_running_with_points = False
    deadline = time.monotonic() + 240
    while True:
        runs = api.get("/runs", params={"sweep_id": sweep["id"], "limit": 50}).json()["items"]
        for run in runs:
            if run["status"] == "running" and run["step"] < run["total_steps"]:
                live = api.get(f"/runs/{run['id']}/metrics", params={"key": "train_loss"}).json()["series"]
                seen_running_with_points |= any(series["steps"] for series in live)
        if all(run["status"] == "succeeded" for run in runs):
            break
        assert not [run for run in runs if run["status"] in ("failed", "cancelled", "diverged")], runs
        assert time.monotonic() < deadline, [(run["status"], run["step"]) for run in runs]
        time.sleep(0.1)
    assert seen_running_with_points, "no metric was readable while its run was running"

    return sweep["id"], runs


def _check_traces_to_the_last_bit(api: httpx2.Client, run: dict[str, Any], data_dir: Path) -> None:
    records = _trained_here(run["config"], data_dir, threads=1)
    answer = api.get(f"/runs/{run['id']}/hidden-norms", params={"include_profile": True}).json()
    assert {series["statistic"] for series in answer["series"]} == set(STATISTICS)
    for series in answer["series"]:
        assert _trace(series) == [
            (r.step, r.mean, r.deviation, r.minimum, r.maximum, r.non_finite, r.profile)
            for r in records
            if isinstance(r, HiddenNorms) and r.statistic == series["statistic"]
        ]
    (losses,) = api.get(f"/runs/{run['id']}/metrics", params={"key": "train_loss"}).json()["series"]
    expected = [(r.step, r.loss) for r in records if isinstance(r, Loss)]
    assert list(zip(losses["steps"], losses["values"], strict=True)) == expected


def _check_comparison(api: httpx2.Client, sweep_id: str) -> None:
    """A group for each cell, depth and layer, over both seeds, that begins at 1."""
    answer = api.get("/compare/hidden-norms", params={"sweep_id": sweep_id, "statistic": "relative"}).json()
    groups = {(g["cell"], g["depth"], g["layer"]): g for g in answer["groups"]}
    assert set(groups) == {(c, d, layer) for c in ("rotrnn", "lru-learned") for d in (1, 2) for layer in range(d)}
    for group in groups.values():
        assert group["seeds"] == [0, 1]
        assert group["steps"][0] == 0
        assert group["n"] == [2] * len(group["steps"])
        assert group["mean"][0] == pytest.approx(1, abs=1e-12), "relative norm is 1 before the first step"
        assert all(
            low <= mean <= high for low, mean, high in zip(*map(group.get, ("low", "mean", "high")), strict=True)
        )


def _trained_here(config: dict[str, Any], data_dir: Path, threads: int) -> list[Any]:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return list(train(RunConfig.from_dict(config), data_dir=data_dir))
    finally:
        torch.set_num_threads(before)


def _trace(series: dict[str, Any]) -> list[tuple[Any, ...]]:
    columns = [series[name] for name in ("mean", "deviation", "minimum", "maximum", "non_finite", "profile")]
    return [(step, *map(_frozen, values)) for step, *values in zip(series["steps"], *columns, strict=True)]


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
