"""Does the demo reuse what exists, say and write what was measured, and clean up when it is interrupted?"""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from client.cli import demo as demo_command
from client.cli import stack
from client.cli.app import app
from client.connection import Stack
from client.errors import RotBenchError
from rotrnn_core.recipes import demo_sweep
from store.status import Status

CELLS = [{"name": "rotrnn", "n_heads": 2}, {"name": "lru", "normaliser": "learned"}]
SMALL = {"model": {"cell": CELLS[0], "d_model": 8, "d_state": 8}, "training": {"steps": 20, "warmup_steps": 2}}


@pytest.fixture
def run_demo(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Result, list[str]]]:
    """A function that runs the demo over a service in place of a stack; its result, and what became of the stack."""

    def run(service: Any, grid: dict[str, Any], *, runs_already: bool = False) -> tuple[Result, list[str]]:
        deeds: list[str] = []
        token_file = elsewhere / "token"
        token_file.write_text("a-token-for-the-tests\n")
        local = Stack(elsewhere / "stack.json", service.url, "http://127.0.0.1:8501", token_file, 1)
        monkeypatch.setattr(demo_command, "demo_sweep", lambda: {"name": "stability", "config": SMALL, "grid": grid})
        monkeypatch.setattr(demo_command, "read_stack", lambda _: local)
        monkeypatch.setattr(stack, "running", lambda _: {"running": True} if runs_already else None)
        monkeypatch.setattr(stack, "start", lambda _: deeds.append("start"))
        monkeypatch.setattr(stack, "stop", lambda _: deeds.append("stop"))
        return CliRunner().invoke(app, ["demo"]), deeds

    return run


def whole_grid() -> dict[str, Any]:
    return {"model.cell": CELLS, "model.n_layers": [1, 2], "training.seed": [0, 1, 2]}


def test_finished_runs_are_reused_and_table_verdict_figure_and_data_are_there(seeded: Any, run_demo: Any) -> None:
    result, deeds = run_demo(seeded.service, whole_grid())
    assert result.exit_code == 0, result.output
    assert deeds == ["start"]
    assert "12 runs, 12 of which exist already" in result.stderr
    rows = [line for line in result.stdout.splitlines() if line.startswith(("RotRNN", "LRU, learned normaliser"))]
    assert "1.030 [1.005, 1.056] n=3" in rows[0]
    assert sum("41.0 % [38.5, 43.5] n=3" in row for row in rows) == 4
    with seeded.service.client() as client:
        assert client.stability(sweep_id=next(client.sweeps()).id).claim.sentence in result.stdout
    for said in ("http://127.0.0.1:8501", seeded.service.url, "rotbench down"):
        assert said in result.stdout
    output = Path(".rotbench/demo")
    assert (output / "stability.png").read_bytes().startswith(b"\x89PNG")
    assert len(list(csv.DictReader((output / "runs.csv").open()))) == 12
    assert len(list(csv.DictReader((output / "hidden_norms.csv").open()))) == 3 * 3 * (3 * 1 + 3 * 2) * 2
    assert len(list(csv.DictReader((output / "stability.csv").open()))) > 12


def test_a_failed_run_is_named_with_its_reason_and_the_demo_fails(fresh: Any, run_demo: Any, monkeypatch: Any) -> None:
    watch = demo_command.watch_sweep

    def work_then_watch(client: Any, sweep_id: str) -> Any:
        first, second = client.get_sweep(sweep_id).runs
        fresh.train(first, relative={0: [1.0, 1.0], 20: [1.0, 1.1]})
        fresh.train(second, status=Status.FAILED, reason="no memory left")
        return watch(client, sweep_id)

    monkeypatch.setattr(demo_command, "watch_sweep", work_then_watch)
    result, deeds = run_demo(fresh, {"training.seed": [0, 1]})
    assert result.exit_code == 1
    assert "seed 1, failed (code_error: no memory left)" in result.stderr
    assert "rotbench down" in result.stdout
    assert deeds == ["start"]


@pytest.mark.parametrize(("runs_already", "deeds"), [(False, ["start", "stop"]), (True, [])])
def test_an_interrupted_demo_stops_what_it_started_and_nothing_else(
    fresh: Any, run_demo: Any, monkeypatch: Any, runs_already: bool, deeds: list[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo_command, "watch_sweep", interrupted)
    result, done = run_demo(fresh, {"training.seed": [0, 1]}, runs_already=runs_already)
    assert (result.exit_code, done) == (130, deeds)
    assert "Interrupted" in result.stderr
    with fresh.client() as client:
        assert {run.status for run in client.runs()} == {"queued"}


def test_a_demo_that_was_paused_goes_on(fresh: Any, run_demo: Any, monkeypatch: Any) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo_command, "watch_sweep", interrupted)
    run_demo(fresh, {"training.seed": [0]})
    with fresh.client() as client:
        (run,) = client.runs()
        client.pause(run.id)
        run_demo(fresh, {"training.seed": [0]})
        assert [(again.id, again.status) for again in client.runs()] == [(run.id, "queued")]


def test_a_stack_that_does_not_start_is_one_sentence(run_demo: Any, fresh: Any, monkeypatch: Any) -> None:
    def refuse(_: Path) -> None:
        raise RotBenchError("the stack did not start", remedy="run `rotbench doctor`")

    monkeypatch.setattr(stack, "check_installed", lambda: refuse(Path()))
    result, deeds = run_demo(fresh, {"training.seed": [0]})
    assert (result.exit_code, deeds) == (1, [])
    assert "rotbench doctor" in result.stderr


def test_the_comparison_is_three_cells_three_depths_and_three_seeds() -> None:
    grid = demo_sweep()["grid"]
    assert [len(values) for values in grid.values()] == [3, 3, 3]
