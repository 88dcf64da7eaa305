"""Do tables say what the numbers are? Estimates with intervals, verdicts, reasons and settings in words."""

import dataclasses
import math
from datetime import UTC, datetime
from typing import Any

import pytest

from client import AccuracyRow, Claim, Divergence, Finding, Measure, PairedRow, Run, Stability, StabilityRow
from client.stability import OverDepthRow
from dashboard.sheets import (
    accuracy,
    config_sheets,
    numbers_sheet,
    over_depth_sheet,
    paired_sheet,
    runs_sheet,
    stability_sheet,
    why,
)
from dashboard.views.stability_words import headline
from dashboard.words import NOTHING
from rotrnn_core.config import RunConfig

SPREAD = Measure("spread_over_training", "Spread over training", "max - min", "ln")
SETTLING = Measure("settling_step", "Settling step", "first step", "step")
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


def stability(**changed: Any) -> Stability:
    undecided = Finding(None, "")
    whole = Stability(
        measures=(SPREAD, SETTLING),
        rows=(
            StabilityRow("t", "lru-tied", 1, SPREAD.name, estimate=0.5, low=None, high=None, n=1),
            StabilityRow("t", "rotrnn", 2, SPREAD.name, estimate=math.log(1.07), low=0.0, high=math.log(1.1), n=3),
            StabilityRow("t", "rotrnn", 1, SPREAD.name, estimate=None, low=None, high=None, n=0),
            StabilityRow("t", "rotrnn", 2, SETTLING.name, estimate=120.0, low=100.0, high=140.0, n=3),
        ),
        paired=(),
        claim=Claim(undecided, undecided, ""),
        accuracy=(AccuracyRow("t", "rotrnn", 2, estimate=0.5, low=0.45, high=0.55, n=3),),
    )
    return dataclasses.replace(whole, **changed)


def run(**changed: Any) -> Run:
    config = RunConfig().to_dict()
    whole = Run(
        id="0123456789",
        name=None,
        sweep_id=None,
        status="succeeded",
        failure_class=None,
        reason=None,
        config=config,
        config_hash="",
        cell="rotrnn",
        task="listops-short",
        depth=2,
        seed=0,
        step=50,
        total_steps=200,
        attempt=1,
        priority="normal",
        created_at=NOON,
        queued_at=NOON,
        started_at=NOON,
        finished_at=None,
        parameter_count=None,
        device=None,
        divergence=None,
        seconds_left=None,
    )
    return dataclasses.replace(whole, **changed)


def test_lines_go_by_depth_then_rotrnn_first() -> None:
    sheet = stability_sheet(stability())
    assert list(zip(sheet["Depth"], sheet["Cell"], strict=True)) == [
        (1, ["rotrnn"]),
        (1, ["lru-tied"]),
        (2, ["rotrnn"]),
    ]


def test_a_spread_reads_as_a_factor_with_its_interval() -> None:
    sheet = stability_sheet(stability())
    assert sheet["Spread over training"] == ["\u2014", "\u00d71.65", "\u00d71.070  (\u00d71.000 to \u00d71.100)"]
    assert sheet["Settling step"][2] == "120  (100 to 140)"
    assert sheet["Test accuracy"][2] == "50.0 %  (45.0 to 55.0)"
    assert sheet["Seeds"] == [0, 1, 3]


def test_the_table_of_all_numbers_keeps_them_as_numbers() -> None:
    sheet = numbers_sheet(stability())
    at = sheet["Estimate"].index(math.log(1.07))
    assert sheet["As percent"][at] == pytest.approx(7)
    assert math.isnan(sheet["As a factor"][sheet["Estimate"].index(120.0)])
    assert sheet["High"][sheet["Estimate"].index(0.5)] is None


@pytest.mark.parametrize(
    ("low", "high", "seen"),
    [(0.1, 0.9, "moves more"), (-0.9, -0.1, "moves less"), (-0.1, 0.9, "undecided"), (None, None, "too few seeds")],
)
def test_a_paired_difference_is_judged_by_its_interval(low: float | None, high: float | None, seen: str) -> None:
    sheet = paired_sheet(
        stability(paired=(PairedRow("t", "lru-tied", None, SPREAD.name, math.log(2), low=low, high=high, n=3),))
    )
    assert (sheet["Moves, against RotRNN"], sheet["Depth"], sheet["Seen"]) == (["\u00d72.00"], ["all"], [seen])


def test_settling_stands_beside_moving_at_each_depth_and_over_all_of_them() -> None:
    paired = tuple(
        PairedRow("t", "lru-tied", depth, SPREAD.name, difference=0.1, low=0.0, high=0.2, n=3) for depth in (None, 4, 2)
    )
    settling = (
        PairedRow("t", "lru-tied", 2, SETTLING.name, difference=120.0, low=-10.0, high=250.0, n=3),
        PairedRow("t", "lru-tied", None, SETTLING.name, difference=80.0, low=None, high=None, n=1),
    )
    sheet = paired_sheet(stability(paired=paired, paired_settling=settling))
    assert sheet["Depth"] == ["2", "4", "all"]
    assert sheet["Settles later by, steps"] == ["120  (-10 to 250)", NOTHING, "80"]


def test_the_spread_over_depths_is_a_factor_with_its_interval() -> None:
    rows = (
        OverDepthRow("t", "lru-tied", "d", (1, 2), estimate=math.log(2), low=None, high=None, n=1),
        OverDepthRow("t", "rotrnn", "d", (1, 2), estimate=math.log(1.1), low=0.0, high=math.log(1.5), n=3),
    )
    sheet = over_depth_sheet(stability(over_depth=rows))
    assert sheet["Cell"] == [["rotrnn"], ["lru-tied"]]
    assert sheet["Largest over smallest"] == ["\u00d71.100", "\u00d72.00"]
    assert sheet["95% interval"] == ["\u00d71.000 to \u00d71.50", NOTHING]


@pytest.mark.parametrize(
    ("constant", "moving", "begins"),
    [(True, True, "RotRNN's norm stays"), (True, False, "These runs do not show"), (True, None, "Not decided yet")],
)
def test_the_headline_follows_from_both_halves_of_the_claim(
    constant: bool | None, moving: bool | None, begins: str
) -> None:
    assert headline(Claim(Finding(constant, ""), Finding(moving, ""), "")).startswith(begins)


def test_a_run_shows_its_test_accuracy_and_until_then_that_of_validation() -> None:
    assert accuracy(run(latest={"validation_accuracy": 0.25})) == 25
    assert accuracy(run(latest={"validation_accuracy": 0.25, "test_accuracy": 0.5})) == 50
    assert math.isnan(accuracy(run()))


def test_a_run_says_why_it_ended() -> None:
    diverged = run(status="diverged", divergence=Divergence(310, 2, "activation"))
    assert why(diverged) == "activation not finite at step 310, layer 2"
    assert why(run(status="failed", reason="no memory left")) == "no memory left"
    assert why(run()) == ""
    assert why(run(stuck=True)).startswith("stuck")


def test_the_list_has_one_line_per_run_and_its_columns_without_any() -> None:
    sheet = runs_sheet([run(), run(name="mine", status="running", seconds_left=75.0)])
    assert sheet["Run"] == ["run 01234567", "mine"]
    assert sheet["Progress"] == [25.0, 25.0]
    assert sheet["Time left"] == ["", "1 min 15 s"]
    assert list(runs_sheet([])) == list(sheet)


def test_a_configuration_is_readable_to_its_last_field() -> None:
    sheets = config_sheets(RunConfig().to_dict())
    assert list(sheets) == ["Task", "Model", "Training", "Probe"]
    model = dict(zip(sheets["Model"]["Setting"], sheets["Model"]["Value"], strict=True))
    assert model["cell.name"] == "rotrnn"
    assert model["bidirectional"] == "no"
    training = dict(zip(sheets["Training"]["Setting"], sheets["Training"]["Value"], strict=True))
    assert training["learning rate"] == "0.003"
