"""Do `rotbench data` and sweep files say what is there, bring it, and refuse what is wrong?"""

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from client.catalogue import PublishedFigure, Task
from client.cli.app import app
from client.cli.leaderboard import accuracy, below_floor
from client.cli.wishes import set_field, sweep_file
from client.stability import AccuracyRow, Stability
from rotrnn_core.config import RunConfig
from rotrnn_core.recipes import RECIPES

SWEEPS = sorted((Path(__file__).parents[2] / "sweeps").glob("*.json"))


def test_a_folder_is_imported_and_too_few_examples_are_said(tmp_path: Path) -> None:
    for split in ("train", "test"):
        for opinion in ("pos", "neg"):
            folder = tmp_path / "aclImdb" / split / opinion
            folder.mkdir(parents=True)
            for number in range(10):
                (folder / f"{number}_9.txt").write_text(f"{opinion} {number}")
    words = ["data", "import", "text", str(tmp_path / "aclImdb"), "--data-dir", str(tmp_path / "data")]
    made = CliRunner().invoke(app, words)
    assert made.exit_code == 0
    assert "18 train, 2 validation, 20 test" in made.stdout
    assert "not as many examples as the whole release" in made.stdout + made.stderr


def test_wrong_data_end_with_the_reason_and_exit_code_1(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["data", "verify", "text", "--data-dir", str(tmp_path / "data")]
    assert CliRunner().invoke(app, words).exit_code == 1
    assert "the data of text are not prepared in" in capfd.readouterr().err


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.stem)
def test_a_published_grid_is_a_grid_of_complete_runs(path: Path) -> None:
    given = sweep_file(str(path))
    assert given.name == path.stem
    assert json.loads(path.read_text())["source"]
    assert given.recipe is not None
    base: Mapping[str, Any] = RECIPES[given.recipe].config.to_dict()
    for setting in given.settings:
        name, _, value = setting.partition("=")
        base = set_field(base, name, json.loads(value))
    assert len(SWEEPS) == 6
    for values in itertools.product(*given.grid.values()):
        config = base
        for name, value in zip(given.grid, values, strict=True):
            config = set_field(config, name, value)
        RunConfig.from_dict(config)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("{", "is not JSON"),
        ("[]", "holds list"),
        ('{"gird": {}}', "holds gird"),
        ('{"grid": []}', "is not a sweep"),
        ('{"grid": {"training.seed": 3}}', "needs a list of values"),
    ],
)
def test_a_sweep_file_that_is_none_says_why(tmp_path: Path, content: str, match: str) -> None:
    path = tmp_path / "sweep.json"
    path.write_text(content)
    with pytest.raises(typer.BadParameter, match=match):
        sweep_file(str(path))


def test_a_result_below_its_floor_is_named() -> None:
    task = Task("t", "Title", "", 10, 0, 9, 1, 1, 1, False, floor_majority=0.1, floor_simple=0.8, floor_method="ridge")
    rows = [AccuracyRow(task="t", cell=cell, depth=2, estimate=e, low=None, high=None, n=1) for cell, e in RESULTS]
    stability = Stability(measures=(), rows=(), paired=(), claim=None, accuracy=tuple(rows))  # type: ignore[arg-type]
    (line,) = below_floor(stability, task)
    assert line == "Below the floor: poor at depth 2 has 70.0 % on Title, and ridge has 80.0 %."


RESULTS = [("poor", 0.7), ("good", 0.9), ("unknown", None)]


def test_a_reported_figure_has_its_error_or_its_failure() -> None:
    assert accuracy(PublishedFigure("m", 0.602, 0.008, "s", "S")) == "60.2 (0.8) %"
    assert accuracy(PublishedFigure("m", 0.611, None, "s", "U")) == "61.1 %"
    assert accuracy(PublishedFigure("m", None, None, "s", "S")) == "fails"
