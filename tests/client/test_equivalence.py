"""Does the command show the theorem at work, and say what is missing where it cannot?"""

import importlib.util
import json
import subprocess
from typing import Any

import pytest
from typer.testing import CliRunner

from client.cli.app import app

ANSWER = {
    "bound": {"float64": 1e-11, "float32": 1e-4},
    "time": 9,
    "differences": [
        {"conversion": "a cell", "dtype": "float64", "outputs": 1e-15, "states": 2e-15, "loss": None},
        {"conversion": "a network", "dtype": "float32", "outputs": 1e-7, "states": 2e-6, "loss": 0.5},
    ],
}


def said(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["equivalence", *arguments])


def answering(monkeypatch: pytest.MonkeyPatch, stdout: str, stderr: str = "") -> None:
    """Let the demonstration say this."""
    done = subprocess.CompletedProcess([], 0, stdout, stderr)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)


def test_the_theorem_is_shown_by_a_process_of_its_own() -> None:
    found = said("--time", "8", "--json")
    assert found.exit_code == 0, found.output
    answer = json.loads(found.stdout)
    assert answer["time"] == 8
    for one in answer["differences"]:
        assert max(one["outputs"], one["states"]) <= answer["bound"][one["dtype"]]


def test_a_reader_sees_each_difference_and_a_verdict_per_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, json.dumps(ANSWER))
    found = said()
    assert found.exit_code == 0
    assert "a network" in found.stdout
    assert "0.500" in found.stdout
    assert "float64: at most 2.0e-15, nothing but rounding (bound 1e-11)." in found.stdout


def test_a_difference_beyond_rounding_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    worse = {**ANSWER, "differences": [{**ANSWER["differences"][0], "states": 1e-9}]}  # type: ignore[index, dict-item]
    worse["bound"] = {"float64": 1e-11}
    answering(monkeypatch, json.dumps(worse))
    found = said()
    assert found.exit_code == 1
    assert "more than rounding" in found.stdout


def test_without_torch_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    found = said()
    assert found.exit_code == 1
    assert "torch is not installed" in found.output
    assert "pip install 'rotbench[core]'" in found.output


def test_a_broken_demonstration_is_told_in_its_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, "", "Traceback\nRuntimeError: no memory\n")
    found = said()
    assert found.exit_code == 1
    assert "RuntimeError: no memory" in found.output
