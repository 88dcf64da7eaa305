"""Does each command say what it should, where it should, and end with the right exit code?"""

import csv
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from client.results import Run
from client.wire import read

ROOT = Path(__file__).parents[2]


def strict(text: str) -> Any:
    """JSON without the constants that JSON does not have."""

    def refuse(name: str) -> float:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_every_reading_command_writes_json_and_nothing_else(seeded: Any) -> None:
    sweep, run = seeded.sweep_id, seeded.diverged
    for arguments, fields in (
        (["runs"], {"items"}),
        (["sweeps"], {"items"}),
        (["show", run], {"run", "attempts", "checkpoints", "history"}),
        (["show", seeded.failed, "--log"], {"run", "attempts", "checkpoints", "log"}),
        (["show", sweep], {"sweep"}),
        (["watch", run], {"id", "status", "latest"}),
        (["watch", sweep], {"id", "counts", "total"}),
        (["compare", "--sweep", sweep], {"rows", "paired", "claim", "accuracy", "measures"}),
        (["tasks"], {"items"}),
        (["models"], {"models", "recipes"}),
        (["workers"], {"items"}),
        (["token"], {"url", "token", "accepted"}),
        (["sweep", "--grid", "training.seed=[0,1]", "--dry-run"], {"total", "duplicates", "configs_preview"}),
    ):
        result = seeded.service.rotbench(*arguments, "--json")
        assert result.exit_code == 0, (arguments, result.output)
        assert fields <= strict(result.stdout).keys(), arguments


def test_json_gives_infinity_by_name_and_reads_back_as_the_run(seeded: Any) -> None:
    said = strict(seeded.service.rotbench("show", seeded.diverged, "--json").stdout)["run"]
    assert said["latest"]["train_loss"] == "Infinity"
    with seeded.service.client() as client:
        assert read(Run, said) == client.run(seeded.diverged)


def test_runs_are_filtered_and_counted(seeded: Any) -> None:
    def listed(*arguments: str) -> list[Any]:
        return list(strict(seeded.service.rotbench("runs", *arguments, "--json").stdout)["items"])

    assert len(listed("--all")) == 16
    assert len(listed()) == 16
    assert len(listed("--limit", "3")) == 3
    assert {run["id"] for run in listed("--status", "failed", "--status", "running")} == {seeded.failed, seeded.running}
    assert len(listed("--sweep", seeded.sweep_id[:8], "--cell", "lru-learned", "--depth", "2")) == 3


def test_a_run_is_found_by_the_first_characters_of_its_id(seeded: Any) -> None:
    result = seeded.service.rotbench("show", seeded.failed[:8])
    assert result.exit_code == 0
    assert seeded.failed in result.stdout
    for text in (
        "ValueError: [red] is no number",
        "code_error",
        "attempt 1 on box",
        "checkpoint of step 10",
        " submitted: queued",
    ):
        assert text in result.stdout


@pytest.mark.parametrize("identity", ["00000000-0000-0000-0000-000000000000", "zzzz", "abc", "", "../x", "0000"])
def test_an_unknown_id_is_one_sentence_and_exit_code_1(seeded: Any, identity: str) -> None:
    for command in ("show", "watch", "cancel", "pause"):
        result = seeded.service.rotbench(command, identity)
        assert result.exit_code == 1, result.output
        assert "there is no run" in result.stderr
        assert result.stdout == ""


def test_a_piped_table_is_plain_with_whole_ids_and_one_line_per_run(seeded: Any) -> None:
    result = seeded.service.rotbench("runs", "--sweep", seeded.sweep_id)
    lines = result.stdout.splitlines()
    assert len(lines) == 13
    assert lines[0].split()[:3] == ["id", "name", "status"]
    assert all(len(line.split()[0]) == 36 for line in lines[1:])
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_table_fits_the_terminal_and_keeps_what_matters(seeded: Any, width: int) -> None:
    import re

    shown = seeded.service.rotbench("runs", "--all", width=width).stdout
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in shown.splitlines()]
    assert max(map(len, lines)) <= width
    assert any(line.startswith(seeded.failed[:8]) and "failed" in line for line in lines)


def test_submit_reads_recipe_file_settings_and_seed(fresh: Any, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model": {"d_model": 8, "d_state": 8}, "training": {"steps": 3}}')
    settings = ["--set", "model.cell=lru", "--set", "model.cell.normaliser=tied", "--set", "training.warmup_steps=1"]
    arguments = [
        "--config",
        str(tmp_path / "config.json"),
        *settings,
        "--seed",
        "5",
        "--name",
        "n",
        "--priority",
        "high",
    ]
    result = fresh.rotbench("submit", *arguments, "--json")
    assert result.exit_code == 0, result.output
    run = strict(result.stdout)
    assert (run["cell"], run["seed"], run["total_steps"], run["name"]) == ("lru-tied", 5, 3, "n")
    assert run["priority"] == "high"


def test_a_recipe_by_its_name_is_a_complete_run(fresh: Any) -> None:
    recipe = strict(fresh.rotbench("models", "--json").stdout)["recipes"][0]
    run = strict(fresh.rotbench("submit", "--recipe", recipe["name"], "--json").stdout)
    assert run["config"] == recipe["config"]


def test_a_sweep_is_planned_then_started_and_reused(fresh: Any) -> None:
    arguments = ["sweep", "--set", "model.d_model=8", "--grid", "model.cell=[lru,rotrnn]", "--seed", "0-1"]
    assert "Nothing was started" in fresh.rotbench(*arguments, "--dry-run").stderr
    assert strict(fresh.rotbench("sweeps", "--json").stdout)["items"] == []
    first = strict(fresh.rotbench(*arguments, "--json").stdout)
    again = strict(fresh.rotbench(*arguments, "--reuse", "--json").stdout)
    assert (first["total"], first["reused"], again["reused"]) == (4, 0, 4)
    assert set(again["runs"]) == set(first["runs"])


def test_a_refused_configuration_names_field_value_and_remedy_with_exit_code_2(fresh: Any) -> None:
    for setting, field in (
        ("model.d_model=-3", "model.d_model"),
        ("model.cell=mamba", "model.cell.name"),
        ("task.name=imagenet", "task.name"),
        ("model.wings=2", "model.wings"),
        ("training.learning_rate=NaN", "training.learning_rate"),
        ("model.cell.decay_min=0.9999", "model.cell.decay_min"),
    ):
        result = fresh.rotbench("submit", "--set", setting)
        assert result.exit_code == 2, result.output
        assert field in result.stderr
        assert "remedy:" in result.stderr
        assert result.stdout == ""
    assert strict(fresh.rotbench("runs", "--json").stdout)["items"] == []


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["bogus"],
        ["submit", "--set", "x"],
        ["submit", "--config", "missing.json"],
        ["submit", "--recipe", "missing"],
        ["submit", "--seed", "x"],
        ["sweep"],
        ["sweep", "--grid", "x"],
        ["runs", "--limit", "0"],
        ["runs", "--status", "sleeping"],
        ["show"],
        ["export", "everything"],
        ["compare", "--statistic", "median"],
    ],
)
def test_wrong_usage_is_exit_code_2_and_no_traceback(seeded: Any, arguments: list[str]) -> None:
    result = seeded.service.rotbench(*arguments)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output


def test_an_illegal_move_is_told_and_exit_code_1(seeded: Any) -> None:
    result = seeded.service.rotbench("pause", seeded.failed)
    assert result.exit_code == 1
    assert "error:" in result.stderr


def test_runs_are_steered_and_each_ends_as_it_should(fresh: Any) -> None:
    ids = [strict(fresh.rotbench("submit", "--seed", str(seed), "--json").stdout)["id"] for seed in (0, 1)]

    def states(command: str) -> list[str]:
        result = fresh.rotbench(command, *ids, "--json")
        assert result.exit_code == 0, result.output
        return [run["status"] for run in strict(result.stdout)["items"]]

    assert states("pause") == ["paused", "paused"]
    assert states("resume") == ["queued", "queued"]
    assert states("cancel") == ["cancelled", "cancelled"]
    assert fresh.rotbench("watch", ids[0]).exit_code == 1


def test_a_matched_sweep_shows_what_each_network_costs_and_keeps_it(fresh: Any) -> None:
    model = ["--set", "model.d_model=8", "--set", "model.d_state=32"]
    arguments = ["sweep", *model, "--grid", "model.cell=[rotrnn,lru]", "--match", "parameters"]
    plan = fresh.rotbench(*arguments, "--dry-run").stdout.splitlines()
    header = next(index for index, line in enumerate(plan) if line.startswith("cell"))
    rotrnn, lru = (line.split() for line in plan[header + 1 : header + 3])
    assert (rotrnn[0], rotrnn[2], lru[0]) == ("rotrnn", "32", "lru-learned")
    assert int(lru[2]) > 32
    assert abs(int(lru[3].replace(",", "")) / int(rotrnn[3].replace(",", "")) - 1) < 0.05
    started = strict(fresh.rotbench(*arguments, "--json").stdout)
    states = {run["cell"]: run for run in strict(fresh.rotbench("runs", "--json").stdout)["items"]}
    assert states["lru-learned"]["config"]["model"]["d_state"] == int(lru[2])
    assert states["lru-learned"]["state_size"] == 2 * int(lru[2])
    assert "flops per token" in fresh.rotbench("show", started["runs"][0]).stdout


def test_a_sweep_is_cancelled_by_its_id(fresh: Any) -> None:
    sweep = strict(fresh.rotbench("sweep", "--seed", "0-2", "--json").stdout)
    said = fresh.rotbench("cancel", sweep["id"])
    assert said.stdout == f"Sweep {sweep['id']}: 3 cancelled\n"
    assert fresh.rotbench("watch", sweep["id"]).exit_code == 1


def test_a_divergence_is_a_result_and_a_failure_is_none(seeded: Any) -> None:
    diverged = seeded.service.rotbench("watch", seeded.diverged)
    failed = seeded.service.rotbench("watch", seeded.failed)
    assert (diverged.exit_code, failed.exit_code) == (0, 1)
    assert "diverged at step 15, first in layer 0 (activation)" in diverged.stdout
    assert "failed (code_error: ValueError: [red] is no number)" in failed.stdout


def test_export_writes_what_was_measured_of_the_chosen_runs(seeded: Any, tmp_path: Path) -> None:
    chosen = ["--sweep", seeded.sweep_id, "--cell", "lru-learned", "--depth", "2"]
    for what, number in (("runs", 3), ("metrics", 3 * 5), ("hidden-norms", 3 * 3 * 3 * 2)):
        result = seeded.service.rotbench("export", what, *chosen)
        assert result.exit_code == 0, result.output
        assert len(list(csv.DictReader(io.StringIO(result.stdout)))) == number, what
    file = tmp_path / "new" / "all.csv"
    assert seeded.service.rotbench("export", "metrics", "-o", str(file)).stdout == ""
    values = [row["value"] for row in csv.DictReader(file.open()) if row["run_id"] == seeded.diverged]
    assert values == ["2.3", "NaN", "Infinity"]
    assert "difference_to_rotrnn" in seeded.service.rotbench("export", "stability").stdout


def test_a_file_that_cannot_be_written_is_told(seeded: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = seeded.service.rotbench("export", "runs", "-o", str(tmp_path / "file" / "x.csv"))
    assert result.exit_code == 1
    assert "error:" in result.stderr
    assert "Traceback" not in result.output


def test_compare_prints_the_verdict_and_draws_the_figure(seeded: Any, tmp_path: Path) -> None:
    figure = tmp_path / "figure.png"
    result = seeded.service.rotbench("compare", "--sweep", seeded.sweep_id, "--figure", str(figure))
    assert result.exit_code == 0, result.output
    with seeded.service.client() as client:
        assert client.stability(sweep_id=seeded.sweep_id).claim.sentence in result.stdout
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_a_figure_of_nothing_is_told(fresh: Any, tmp_path: Path) -> None:
    result = fresh.rotbench("compare", "--figure", str(tmp_path / "figure.png"))
    assert result.exit_code == 1
    assert "no run has a trace yet" in result.stderr


def test_the_token_is_masked_unless_it_is_asked_for(seeded: Any) -> None:
    assert "a-token-for-the-tests" not in seeded.service.rotbench("token").output
    assert seeded.service.rotbench("token", "--reveal").stdout == "a-token-for-the-tests\n"
    refused = seeded.service.rotbench("--token", "wrong", "token")
    assert refused.exit_code == 1
    assert "error:" in refused.stderr


def test_an_api_that_is_not_there_is_one_sentence_and_exit_code_1(seeded: Any) -> None:
    result = seeded.service.rotbench("--url", "http://127.0.0.1:9", "runs", "--json")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "no answer from http://127.0.0.1:9" in result.stderr
    assert "rotbench up" in result.stderr


def test_doctor_says_ok_or_problem_for_each_thing(seeded: Any, elsewhere: Path) -> None:
    result = seeded.service.rotbench("doctor", "--json")
    found = strict(result.stdout)
    by_name = {check["name"]: check for check in found["checks"]}
    assert {"python", "packages", "torch", "postgres", "redis", "gpu", "data", "port", "api"} <= by_name.keys()
    assert by_name["api"]["ok"]
    assert found["ok"] == (result.exit_code == 0)
    assert all(check["ok"] or check["remedy"] for check in found["checks"])
    broken = seeded.service.rotbench("--url", "http://127.0.0.1:9", "doctor")
    assert broken.exit_code == 1
    assert "problem  api" in broken.stdout


def command_line(seeded: Any, *arguments: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "client.cli",
        "--url",
        seeded.service.url,
        "--token",
        "a-token-for-the-tests",
        *arguments,
    ]


def test_ctrl_c_in_a_watch_is_exit_code_130_and_no_traceback(seeded: Any) -> None:
    watch = subprocess.Popen(
        command_line(seeded, "watch", seeded.running),
        cwd=ROOT,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests in a shell's background ignore it
    )
    assert watch.stderr is not None
    first = watch.stderr.readline()
    assert "rotrnn depth 2 seed 7: running, step 5/20, loss 1.5" in first
    watch.send_signal(signal.SIGINT)
    out, rest = watch.communicate(timeout=20)
    assert (watch.returncode, out) == (130, "")
    assert "Traceback" not in rest


def test_a_reader_that_goes_away_is_no_error(seeded: Any) -> None:
    read_end, write_end = os.pipe()
    export = subprocess.Popen(
        command_line(seeded, "export", "metrics"), cwd=ROOT, stdout=write_end, stderr=subprocess.PIPE, text=True
    )
    os.close(write_end)
    os.close(read_end)
    _, said = export.communicate(timeout=30)
    assert "Traceback" not in said
    assert "Exception ignored" not in said
