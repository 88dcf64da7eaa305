"""Do the charts of spreads and of single runs show what they were given? Also what is not finite, and ticks."""

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from client import Divergence, HiddenNormSeries, HiddenNormTrace, Measure, MetricSeries, StabilityRow
from dashboard.figures.axes import count_axis, log_ticks, share_axis
from dashboard.figures.curves import CURVES, metric_figure
from dashboard.figures.layers import layers_figure
from dashboard.figures.spread import points, spread_figure
from dashboard.palette import cell_colour
from dashboard.words import STATISTICS

SPREAD = Measure("spread_over_training", "Spread over training", "max - min", "ln")
SETTLING = Measure("settling_step", "Settling step", "first step", "step")
LOSS, ACCURACY, GRADIENT, RATE = CURVES


def row(
    cell: str, depth: int, measure: Measure, estimate: float | None, low: float | None = None, high: float | None = None
) -> StabilityRow:
    return StabilityRow(
        "listops-short", cell, depth, measure.name, estimate=estimate, low=low, high=high, n=3 if low is not None else 1
    )


def markers(figure: go.Figure) -> list[Any]:
    return [trace for trace in figure.data if trace.mode == "markers" and trace.name]


@pytest.mark.parametrize(
    ("low", "high"), [(0.93, 1.08), (0.8, 1.36), (0.5, 3.0), (0.9, 40.0), (1e-3, 1e6), (0.999, 1.001)]
)
def test_a_logarithmic_axis_has_a_handful_of_round_ticks_inside_its_range(low: float, high: float) -> None:
    ticks = log_ticks(low, high)
    assert 3 <= len(ticks) <= 8
    assert all(low <= tick <= high for tick in ticks)
    assert ticks == sorted(set(ticks))


@pytest.mark.parametrize(("low", "high", "said"), [(0, 0.9, ".0%"), (0.5, 0.56, ".0%"), (0.503, 0.507, ".2%")])
def test_shares_have_as_many_decimals_as_tell_their_ticks_apart(low: float, high: float, said: str) -> None:
    assert share_axis(low, high)["tickformat"] == said


def test_counts_have_no_tick_between_two_of_them() -> None:
    assert count_axis(0, 2.2)["dtick"] == 1
    assert "dtick" not in count_axis(0, 4_000)


def test_spreads_are_drawn_as_factors_and_steps_as_they_are() -> None:
    rows = [row("rotrnn", 1, SPREAD, math.log(1.05), math.log(1.02), math.log(1.08)), row("rotrnn", 1, SETTLING, 120.0)]
    (spread,) = points(SPREAD, rows)
    (settling,) = points(SETTLING, rows)
    assert (spread.value, spread.low, spread.high) == pytest.approx((1.05, 1.02, 1.08))
    assert (settling.value, settling.low) == (120.0, None)
    assert "too few for an interval" in settling.said


def test_a_measure_without_an_estimate_has_no_point() -> None:
    assert points(SPREAD, [row("rotrnn", 1, SPREAD, None)]) == []


def test_each_measure_has_its_panel_and_each_cell_and_depth_its_line() -> None:
    rows = [
        row(cell, depth, measure, 0.1 * depth, 0.05, 0.4)
        for cell in ("rotrnn", "lru-tied")
        for depth in (1, 2)
        for measure in (SPREAD, SETTLING)
    ]
    figure = spread_figure((SPREAD, SETTLING), rows, "light", columns=4)
    assert [note.text for note in figure.layout.annotations] == ["spread over training", "settling step"]
    assert list(figure.layout.yaxis.categoryarray) == [
        "LRU (tied) \u00b7 depth 2",
        "RotRNN \u00b7 depth 2",
        "LRU (tied) \u00b7 depth 1",
        "RotRNN \u00b7 depth 1",
    ]
    first = markers(figure)[0]
    np.testing.assert_allclose(first.x, np.exp([0.1, 0.2]))
    assert first.marker.color == cell_colour("rotrnn", "light")


def test_an_interval_that_leaves_the_panel_ends_in_an_arrow_that_names_its_end() -> None:
    figure = spread_figure((SPREAD,), [row("rotrnn", 1, SPREAD, 0.1, 0.0, 9.0)], "light", columns=1)
    (arrow,) = (trace for trace in figure.data if trace.marker.symbol == "triangle-right")
    assert len(arrow.x) == 1
    assert "\u00d78,103" in arrow.text[0]
    assert arrow.x[0] == pytest.approx(10 ** figure.layout.xaxis.range[1])


def series(key: str, values: tuple[float, ...]) -> MetricSeries:
    steps = tuple(range(10, 10 * len(values) + 10, 10))
    return MetricSeries(key, steps, values, (1,) * len(values))


def test_a_curve_holds_its_series_and_only_those_that_exist() -> None:
    figure = metric_figure(LOSS, {"train_loss": series("train_loss", (2.0, 1.0))}, "rotrnn", "light")
    (curve,) = figure.data
    assert (curve.name, list(curve.x)) == ("training", [10, 20])
    np.testing.assert_allclose(curve.y, [2.0, 1.0])


def test_what_is_not_finite_is_a_gap_with_a_mark_that_names_the_value() -> None:
    given = {"gradient_norm": series("gradient_norm", (1.0, math.inf, math.nan, 3.0))}
    curve, marks = metric_figure(GRADIENT, given, "rotrnn", "light").data
    assert curve.connectgaps is False
    assert not np.isfinite(curve.y[1:3]).any()
    assert (list(marks.x), marks.name) == ([20, 30], "2 not finite")
    assert list(marks.text) == ["all parameters: <b>infinity</b>", "all parameters: <b>not a number</b>"]


def test_accuracy_is_in_percent_and_gradients_are_logarithmic() -> None:
    accuracy = metric_figure(ACCURACY, {"train_accuracy": series("train_accuracy", (0.1, 0.5))}, "rotrnn", "light")
    gradient = metric_figure(GRADIENT, {"gradient_norm": series("gradient_norm", (0.1, 50.0))}, "rotrnn", "light")
    assert accuracy.layout.yaxis.tickformat == ".0%"
    assert gradient.layout.yaxis.type == "log"


def test_the_test_result_is_a_single_marker() -> None:
    given = {
        "train_loss": series("train_loss", (2.0, 1.0)),
        "test_loss": MetricSeries("test_loss", (20,), (1.5,), (1,)),
    }
    assert [trace.mode for trace in metric_figure(LOSS, given, "rotrnn", "light").data][-1] == "markers"


def test_a_divergence_is_a_line_at_its_step() -> None:
    given = {"train_loss": series("train_loss", (2.0, math.nan))}
    figure = metric_figure(LOSS, given, "rotrnn", "light", divergence=Divergence(20, None, "gradient"))
    assert figure.layout.shapes[0].x0 == 20
    assert figure.layout.annotations[0].text == "diverged at 20"


def test_no_values_make_an_empty_chart() -> None:
    assert len(metric_figure(RATE, {}, "rotrnn", "light").data) == 0


def trace_of(mean: tuple[tuple[float, ...], ...], non_finite: tuple[tuple[int, ...], ...]) -> HiddenNormTrace:
    steps = tuple(range(0, 10 * len(mean), 10))
    one = HiddenNormSeries("relative", steps, (1,) * len(mean), mean, mean, mean, mean, non_finite)
    return HiddenNormTrace("run", len(mean[0]), (0,), (one,))


def test_every_layer_is_a_line_and_what_is_not_finite_is_counted() -> None:
    trace = trace_of(((1.0, 1.0), (2.0, math.nan)), ((0, 0), (0, 1_234)))
    figure = layers_figure(trace, STATISTICS[0], "lru-tied", "light", columns=4)
    by_name = {one.name: one for one in figure.data}
    np.testing.assert_allclose(by_name["layer 0"].y, [1.0, 2.0])
    assert math.isnan(by_name["layer 1"].y[1])
    assert by_name["layer 1"].line.color == cell_colour("lru-tied", "light")
    assert list(by_name["layer 1 not finite"].text) == ["layer 1: 1,234 values not finite"]


def test_a_run_without_that_statistic_has_an_empty_chart() -> None:
    trace = HiddenNormTrace("run", 2, (0,), ())
    figure = layers_figure(trace, STATISTICS[0], "rotrnn", "light", columns=4)
    assert [one.name for one in figure.data] == ["as before training"]
