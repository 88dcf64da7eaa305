"""Do the commands work on a real local stack, from the submit to the trained run?"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from client.cli import stack as stack_command

ROOT = Path(__file__).parents[2]
SMALL = {
    "task": {"train_size": 64, "validation_size": 16, "test_size": 16},
    "model": {"cell": "lru", "d_model": 8, "d_state": 8, "n_layers": 1},
    "training": {"steps": 4, "batch_size": 8, "warmup_steps": 1, "log_every": 1, "evaluate_every": 4},
    "probe": {"every": 2, "batch_size": 4},
}


def test_a_folder_without_a_stack_has_none_that_runs(tmp_path: Path) -> None:
    assert stack_command.running(tmp_path / "nothing") is None


@pytest.mark.slow
def test_a_run_is_submitted_watched_and_read_from_the_folder_of_a_real_stack(stack: Any, tmp_path: Path) -> None:
    assert stack_command.running(stack.data_dir)["api_url"] == stack.api_url  # type: ignore[index]
    (tmp_path / ".rotbench").symlink_to(stack.data_dir)
    (tmp_path / "config.json").write_text(json.dumps(SMALL))

    def rotbench(*arguments: str) -> "subprocess.CompletedProcess[str]":
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ROTBENCH_")}
        return subprocess.run(
            [sys.executable, "-m", "client.cli", *arguments],
            cwd=tmp_path,
            env=environment | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    done = rotbench("submit", "--config", "config.json", "--seed", "3", "--watch", "--json")
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)
    assert (run["status"], run["step"], run["seed"], run["cell"]) == ("succeeded", 4, 3, "lru-learned")
    assert "lru-learned depth 1 seed 3" in done.stderr
    shown = rotbench("show", run["id"][:8])
    assert "succeeded" in shown.stdout
    assert "test accuracy" in shown.stdout
    exported = rotbench("export", "hidden-norms").stdout
    assert sum(run["id"] in line and ",relative," in line for line in exported.splitlines()) == 3
    assert rotbench("workers", "--json").returncode == 0
