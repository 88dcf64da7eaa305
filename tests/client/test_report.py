"""Does the demo's table say what the numbers say?"""

import io
import math

import pytest
from rich.console import Console

from client.cli import output, reporting
from client.report import conditions, definitions, differences, over_depth
from client.stability import (
    AccuracyRow,
    Claim,
    CostRow,
    Finding,
    Measure,
    OverDepthRow,
    PairedRow,
    Stability,
    StabilityRow,
)

MEASURES = tuple(
    Measure(name, name.replace("_", " ").capitalize(), f"the {name}", "ln")
    for name in ("spread_over_training", "spread_over_layers", "spread_over_seeds")
)


def known(**changes: object) -> Stability:
    """One cell at one depth with round numbers, and what the API may leave open."""
    rows = (
        StabilityRow(
            "t",
            "lru-learned",
            2,
            "spread_over_training",
            estimate=math.log(1.5),
            low=math.log(1.25),
            high=math.log(2),
            n=3,
        ),
        StabilityRow("t", "lru-learned", 2, "spread_over_layers", estimate=math.log(1.2), low=None, high=None, n=1),
        StabilityRow("t", "lru-learned", 2, "spread_over_seeds", estimate=None, low=None, high=None, n=1),
        StabilityRow("t", "rotrnn", 1, "spread_over_training", estimate=0.0, low=0.0, high=0.0, n=3),
        StabilityRow("t", "rotrnn", 1, "settling_step", estimate=25.0, low=0.0, high=50.0, n=3),
    )
    fields: dict[str, object] = {
        "measures": MEASURES,
        "rows": rows,
        "paired": (
            PairedRow("t", "lru-learned", None, "spread_over_training", 0.5, low=0.25, high=0.75, n=3),
            PairedRow("t", "lru-learned", 2, "spread_over_training", -0.125, low=None, high=None, n=1),
        ),
        "claim": Claim(Finding(True, "a"), Finding(None, "b"), "The claim: undecided. [a] b"),
        "accuracy": (
            AccuracyRow("t", "rotrnn", 1, estimate=0.5, low=0.25, high=0.75, n=3),
            AccuracyRow("t", "lru-learned", 2, estimate=None, low=None, high=None, n=0),
        ),
        "warnings": ("Left out: one run.",),
    }
    return Stability(**{**fields, **changes})  # type: ignore[arg-type]


def test_rotrnn_comes_first_and_spreads_are_shown_as_factors_with_interval_and_n() -> None:
    rotrnn, lru = conditions(known())
    assert (rotrnn.cell, rotrnn.title, rotrnn.depth) == ("rotrnn", "RotRNN", 1)
    assert rotrnn.accuracy.text() == "50.0 % [25.0, 75.0] n=3"
    assert [spread.text() for spread in rotrnn.spreads] == ["1.000 [1.000, 1.000] n=3", "-", "-"]
    assert [spread.text() for spread in lru.spreads] == ["1.500 [1.250, 2.000] n=3", "1.200 n=1", "- n=1"]
    assert lru.accuracy.text() == "-"


def test_differences_stand_by_depth_with_all_depths_last_and_keep_their_sign() -> None:
    assert [(row.depth, row.difference.text()) for row in differences(known())] == [
        ("2", "-0.125 n=1"),
        ("all", "+0.500 [+0.250, +0.750] n=3"),
    ]


def test_a_spread_beyond_what_a_float_holds_is_infinite_and_no_error() -> None:
    rows = (StabilityRow("t", "rotrnn", 1, "spread_over_training", estimate=800.0, low=10.0, high=math.nan, n=3),)
    assert conditions(known(rows=rows))[0].spreads[0].text() == "inf [2.2e+04, nan] n=3"


def test_costs_settling_and_the_spread_over_depth_are_said_where_there_are_some() -> None:
    stability = known(
        costs=(CostRow("t", "rotrnn", 1, 9690, 64, 100), CostRow("t", "rotrnn", 1, 12000, 64, 100)),
        paired_settling=(PairedRow("t", "lru-learned", 2, "settling_step", -30.0, low=-60.0, high=0.0, n=3),),
        over_depth=(
            OverDepthRow("t", "lru-tied", "spread_over_depth", (1, 2), estimate=None, low=None, high=None, n=0),
            OverDepthRow(
                "t", "rotrnn", "spread_over_depth", (1, 2, 4), estimate=math.log(2), low=0.0, high=math.log(4), n=3
            ),
        ),
    )
    rotrnn, lru = conditions(stability)
    assert (rotrnn.parameters, lru.parameters) == ("9,690-12,000", "-")
    assert [row.settling.text() for row in differences(stability)] == ["-30 [-60, +0] n=3", "-"]
    assert [(line.cell, line.depths, line.spread.text()) for line in over_depth(stability)] == [
        ("rotrnn", (1, 2, 4), "2.000 [1.000, 4.000] n=3"),
        ("lru-tied", (1, 2), "-"),
    ]


def test_each_spread_is_defined_in_the_words_of_the_api() -> None:
    assert definitions(known())[0] == "Spread over training: the spread_over_training"


def printed(monkeypatch: pytest.MonkeyPatch, stability: Stability, width: int | None) -> str:
    """The report in a terminal of that width, or in a pipe."""
    stream = io.StringIO()
    console = Console(file=stream, width=width or 80, force_terminal=width is not None, color_system=None)
    for module in (output, reporting):
        monkeypatch.setattr(module, "out", console)
    reporting.show_report(stability)
    return stream.getvalue()


@pytest.mark.parametrize("width", [50, 80, 100, 160])
def test_no_line_of_the_report_is_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    text = printed(monkeypatch, known(), width)
    assert max(map(len, text.splitlines())) <= width
    for part in ("RotRNN" if width != 80 else "rotrnn", "1.500", "[1.250, 2.000]", "50.0 %", "+0.500 [+0.250, +0.750]"):
        assert part in text


def test_in_a_pipe_each_row_is_one_line_and_the_verdict_is_the_apis_own_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(monkeypatch, known(), None) + capsys.readouterr().out
    assert "The claim: undecided. [a] b\n" in text
    assert "LRU's norm does not: undecided" in text
    assert "Left out: one run." in text
    assert any("RotRNN" in line and "50.0 % [25.0, 75.0] n=3" in line for line in text.splitlines())


def test_two_tasks_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tuple(
        StabilityRow(task, "rotrnn", 1, "spread_over_training", estimate=0.0, low=0.0, high=0.0, n=3)
        for task in ("one", "two")
    )
    text = printed(monkeypatch, known(rows=rows, accuracy=(), paired=()), 160)
    assert "one" in text
    assert "two" in text


def test_without_runs_the_report_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "No run with a trace yet" in printed(monkeypatch, known(rows=(), accuracy=(), paired=()), 80)
