"""Does a comparison show the numbers that it was given: metrics, survival, cost, reported results?"""

import math
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from client import AccuracyRow, Task
from client.catalogue import PublishedFigure
from client.seeds import Difference, MetricGroup, SurvivalGroup
from dashboard.comparing import beside_reported, differences_sheet, seconds_per_step, tokens_per_step
from dashboard.figures.frontier import frontier_figure, frontier_sheet, points
from dashboard.figures.metrics import METRICS, Along, metric_sheet, metrics_figure
from dashboard.figures.survival import survival_figure, survival_sheet, survival_words

ACCURACY, LOSS = METRICS[:2]
GRADIENT = next(metric for metric in METRICS if metric.log)
STEP = Along("training step")


def group(cell: str = "rotrnn", depth: int = 1, **changed: Any) -> MetricGroup:
    mean = (0.2, 0.3, 0.4)
    fields: dict[str, Any] = {
        "task": "listops-short",
        "cell": cell,
        "depth": depth,
        "seeds": (0, 1),
        "run_ids": ("a", "b"),
        "steps": (50, 100, 150),
        "n": (2, 2, 2),
        "non_finite": (0, 0, 0),
        "mean": mean,
        "median": mean,
        "iqm": mean,
        "minimum": (0.1, 0.2, 0.3),
        "maximum": (0.3, 0.4, 0.5),
        "low": (0.1, None, 0.3),
        "high": (0.3, None, 0.5),
    }
    return MetricGroup(**(fields | changed))


def named(figure: Any, name: str) -> list[Any]:
    return [trace for trace in figure.data if trace.name == name]


def test_each_depth_has_a_panel_and_each_cell_a_line_with_its_interval() -> None:
    figure = metrics_figure([group(), group("lru-tied"), group(depth=2)], ACCURACY, STEP, "light", columns=3)
    assert [note.text for note in figure.layout.annotations] == ["depth 1", "depth 2"]
    (first, second) = named(figure, "RotRNN")
    np.testing.assert_allclose(first.y, [0.2, 0.3, 0.4], rtol=1e-6)
    assert list(first.x) == [50, 100, 150]
    assert first.text[0] == "n = 2 \u00b7 95% 0.100 to 0.300"
    assert (first.showlegend, second.showlegend) == (True, False)
    assert np.isnan(named(figure, "RotRNN, 95% interval")[0].x).sum() == 2
    assert figure.layout.yaxis.tickformat == ".0%"


def test_along_time_each_group_has_its_own_pace_and_one_without_is_left_out() -> None:
    along = Along("wall time, s", {("listops-short", "rotrnn", 1): 0.5})
    figure = metrics_figure([group(), group("lru-tied")], LOSS, along, "light", columns=3)
    (line,) = named(figure, "RotRNN")
    assert list(line.x) == [25, 50, 75]
    assert not named(figure, "LRU (tied)")


def test_further_settings_have_a_dash_and_a_name_of_their_own() -> None:
    groups = [group(fields={"training.learning_rate": value}) for value in ("0.001", "0.003")]
    figure = metrics_figure(groups, ACCURACY, STEP, "light", columns=3)
    (slow,), (fast,) = (named(figure, f"RotRNN \u00b7 learning rate {v}") for v in ("0.001", "0.003"))
    assert slow.line.dash != fast.line.dash
    assert slow.line.color == fast.line.color


def test_values_that_are_not_finite_are_gaps_with_a_mark() -> None:
    lost = group(mean=(0.2, math.nan, 0.4), n=(2, 0, 2), non_finite=(0, 2, 0))
    figure = metrics_figure([lost], LOSS, STEP, "light", columns=3)
    (marks,) = named(figure, "not finite, left out")
    assert list(marks.x) == [100]
    assert marks.text[0] == "RotRNN: 2 not finite, left out"


def test_a_metric_that_spans_decades_has_a_logarithmic_axis() -> None:
    figure = metrics_figure([group(low=(-1.0, None, 0.3))], GRADIENT, STEP, "dark", columns=3)
    assert figure.layout.yaxis.type == "log"
    (band,) = named(figure, "RotRNN, 95% interval")
    assert np.nanmin(band.y) == pytest.approx(10 ** figure.layout.yaxis.range[0], rel=1e-6)


def test_the_sheet_of_a_metric_has_a_line_per_group_and_step() -> None:
    sheet = metric_sheet([group(), group(depth=2)])
    assert sheet["step"] == [50, 100, 150] * 2
    assert sheet["low"][:3] == [0.1, None, 0.3]


def test_the_pace_is_that_of_the_runs_that_ended(run: Any) -> None:
    runs = [run(), run(seed=1, finished_at=run().started_at + timedelta(seconds=300)), run("lru", finished_at=None)]
    seconds = seconds_per_step(runs)
    assert seconds == {("listops-short", "rotrnn", 1): 1.0}
    pace = group(mean=(100.0, math.nan, 300.0))
    assert tokens_per_step([pace, group("lru-tied")], seconds) == {("listops-short", "rotrnn", 1): 200.0}


def survivors(cell: str = "rotrnn", depth: int = 1, **changed: Any) -> SurvivalGroup:
    fields: dict[str, Any] = {
        "task": "listops-short",
        "cell": cell,
        "depth": depth,
        "seeds": (0, 1, 2, 3),
        "run_ids": ("a", "b", "c", "d"),
        "steps": (0, 80, 200),
        "at_risk": (4, 4, 3),
        "lost": (0, 1, 0),
        "share": (1.0, 0.75, 0.75),
        "low": (0.5, 0.3, 0.3),
        "high": (1.0, 0.95, 0.95),
        "diverged": 1,
        "stuck": 0,
        "training": 0,
    }
    return SurvivalGroup(**(fields | changed))


def test_survival_steps_down_where_a_seed_was_lost() -> None:
    figure = survival_figure([survivors(), survivors(depth=2)], "light", columns=3)
    line = named(figure, "RotRNN")[0]
    assert (list(line.x), list(line.y), line.line.shape) == ([0, 80, 200], [1.0, 0.75, 0.75], "hv")
    band = named(figure, "RotRNN, 95% interval")[0]
    assert list(band.x[:6]) == [0, 80, 80, 200, 200, 200]
    assert list(band.y[:6]) == [1.0, 1.0, 0.95, 0.95, 0.95, 0.95]
    assert survival_sheet([survivors()])["lost"] == [0, 1, 0]


def test_survival_says_who_lost_seeds_and_that_no_one_did() -> None:
    assert survival_words([survivors()]) == "RotRNN at depth 1 lost 1 of 4 (1 diverged, 0 stuck)."
    assert survival_words([survivors(diverged=0)]).startswith("No seed was lost: none of 4 runs")


ROWS = [
    AccuracyRow("listops-short", "rotrnn", 1, estimate=0.4, low=0.3, high=0.5, n=3),
    AccuracyRow("listops-short", "rotrnn", 2, estimate=0.45, low=None, high=None, n=1),
    AccuracyRow("listops-short", "lru-tied", 1, estimate=None, low=None, high=None, n=0),
]


def test_accuracy_stands_at_its_cost_with_its_interval_and_depth() -> None:
    shown = points(ROWS, {("listops-short", cell, d): 1000.0 * d for cell in ("rotrnn", "lru-tied") for d in (1, 2)})
    figure = frontier_figure(shown, "trained parameters", "light", columns=4)
    (marks,) = named(figure, "RotRNN")
    assert (list(marks.x), list(marks.y), list(marks.text)) == ([1000, 2000], [0.4, 0.45], ["1", "2"])
    assert list(figure.data[0].y) == [0.3, 0.5, None]
    assert figure.layout.xaxis.type == "log"
    assert frontier_sheet(shown, "parameters")["parameters"] == [1000.0, 2000.0]
    assert points(ROWS, {}) == []


def task(*, stand_in: bool) -> Task:
    reported = (
        PublishedFigure("S5", 0.6215, None, "S5, table 1", "S"),
        PublishedFigure("LRU", 0.602, 0.008, "LRU, table 3", "S"),
        PublishedFigure("Transformer", None, None, "LRA", "U"),
    )
    return Task("listops-short", "ListOps", "", 10, 18, 2048, 1, 1, 1, stand_in, published=reported)


def test_own_and_reported_results_never_share_a_column() -> None:
    sheet = beside_reported(task(stand_in=False), ROWS)
    assert sheet["Model"] == ["RotRNN, depth 1", "RotRNN, depth 2", "S5", "LRU", "Transformer"]
    assert sheet["Here"][:2] == ["40.0 % (30.0 to 50.0, n = 3)", "45.0 % (n = 1)"]
    assert sheet["Reported"][2:] == ["62.15 %", "60.2 % (0.8)", "training fails"]
    assert all(not (here and reported) for here, reported in zip(sheet["Here"], sheet["Reported"], strict=True))
    assert sheet["Mark"][-1] == "unverified"


def test_a_stand_in_never_stands_beside_reported_results() -> None:
    with pytest.raises(ValueError, match="stand-in"):
        beside_reported(task(stand_in=True), ROWS)


def test_a_difference_says_its_interval_and_what_decides_it() -> None:
    row = Difference("t", "lru-tied", "rotrnn", 2, 3, -0.05, -0.08, -0.02, -1.5, 0.01, 0.02)
    sheet = differences_sheet([row])
    assert sheet["95% interval"] == ["-0.0800 to -0.0200"]
    assert (sheet["Effect size"], sheet["p (Holm)"]) == (["-1.50"], ["0.0200"])


def test_the_page_shows_the_metric_its_differences_and_what_it_costs(service: Any, open_at: Any) -> None:
    page = open_at(service, "compare", along="Wall time", metric="Validation loss")
    assert page.title[0].value == "Compare"
    assert page.header[0].value == "Validation loss"
    charts = [chart.proto.id.split("-")[-1] for chart in page.get("plotly_chart")]
    assert charts == ["curves", "frontier"]
    address = page.query_params
    assert (address["along"], address["metric"], address["cost"]) == ("Wall time", "Validation loss", "Parameters")
    said = "\n".join(str(one.value) for one in page.caption)
    assert "stand-in" in said
    assert not page.error


def test_without_sweeps_there_is_nothing_to_compare(empty_service: Any, open_at: Any) -> None:
    assert "Nothing to compare yet" in open_at(empty_service, "compare").header[0].value
