"""Does the stability figure show the numbers that it was given? Means, intervals, gaps, lost seeds and axes."""

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from client import Divergence, HiddenNormComparison, HiddenNormGroup, SingleRun
from dashboard.figures.heat import heat_figure, heat_maps
from dashboard.figures.norms import bounds, norms_figure
from dashboard.palette import cell_colour, cell_symbol
from dashboard.words import STATISTICS

RELATIVE, PER_HEAD, WHOLE = STATISTICS
STEPS = (0, 10, 20, 30)


def group(cell: str = "rotrnn", depth: int = 1, layer: int = 0, **changed: Any) -> HiddenNormGroup:
    mean = (1.0, 1.5, 2.0, 2.5)
    fields: dict[str, Any] = {
        "task": "listops-short",
        "cell": cell,
        "depth": depth,
        "layer": layer,
        "statistic": "relative",
        "seeds": (0, 1),
        "run_ids": ("a", "b"),
        "steps": STEPS,
        "n": (2, 2, 2, 2),
        "mean": mean,
        "low": tuple(value * 0.9 for value in mean),
        "high": tuple(value * 1.1 for value in mean),
        "minimum": tuple(value * 0.95 for value in mean),
        "maximum": tuple(value * 1.05 for value in mean),
        "non_finite": (0, 0, 0, 0),
    }
    return HiddenNormGroup(**(fields | changed))


def compared(*groups: HiddenNormGroup) -> HiddenNormComparison:
    return HiddenNormComparison("relative", (), groups)


def drawn(*groups: HiddenNormGroup, columns: int = 4, **options: Any) -> go.Figure:
    return norms_figure(compared(*groups), options.pop("statistic", RELATIVE), "light", columns=columns, **options)


def named(figure: go.Figure, name: str) -> list[Any]:
    return [trace for trace in figure.data if trace.name == name]


def titles(figure: go.Figure) -> list[str]:
    return [note.text for note in figure.layout.annotations]


def test_the_line_is_the_mean_in_the_cells_colour_and_marker() -> None:
    figure = drawn(group("rotrnn"), group("lru-learned", mean=(1.0, 3.0, 5.0, 7.0)))
    (line,) = named(figure, "LRU (learned)")
    assert list(line.x) == list(STEPS)
    np.testing.assert_allclose(line.y, [1, 3, 5, 7])
    assert line.line.color == cell_colour("lru-learned", "light")
    assert line.marker.symbol == cell_symbol("lru-learned")


def test_hovering_tells_n_and_the_interval() -> None:
    (line,) = named(drawn(group(n=(2, 2, 1, 2), low=(0.9, 1.4, None, 2.2), high=(1.1, 1.6, None, 2.8))), "RotRNN")
    assert line.text[0] == "n = 2 \u00b7 95% 0.900 to 1.10"
    assert line.text[2] == "n = 1"


def test_the_band_is_the_interval_and_breaks_where_there_is_none() -> None:
    (band,) = named(drawn(group(low=(0.9, 1.4, None, 2.2), high=(1.1, 1.6, None, 2.8))), "RotRNN, 95% interval")
    x, y = np.array(band.x), np.array(band.y)
    cuts = np.flatnonzero(np.isnan(x))
    assert list(cuts) == [4, 7]
    np.testing.assert_allclose(x[:4], [0, 10, 10, 0])
    np.testing.assert_allclose(y[:4], [1.1, 1.6, 1.4, 0.9], rtol=1e-6)
    np.testing.assert_allclose(y[5:7], [2.8, 2.2], rtol=1e-6)


def test_an_interval_below_zero_ends_at_the_floor_of_the_logarithmic_panel() -> None:
    figure = drawn(group(low=(-5.0, -5.0, -5.0, -5.0)))
    floor = 10 ** figure.layout.yaxis.range[0]
    (band,) = named(figure, "RotRNN, 95% interval")
    assert np.nanmin(band.y) == pytest.approx(floor, rel=1e-6)


def test_a_mean_that_is_not_a_number_is_a_gap_with_a_mark_and_a_count() -> None:
    lost = group(
        mean=(1.0, math.nan, 2.0, 2.5),
        n=(2, 0, 1, 2),
        non_finite=(0, 2, 1, 0),
        minimum=(1.0, math.nan, 2.0, 2.5),
        maximum=(1.0, math.nan, 2.0, 2.5),
    )
    figure = drawn(lost)
    (line,) = named(figure, "RotRNN")
    assert math.isnan(line.y[1])
    assert line.connectgaps is False
    (marks,) = named(figure, "not finite, left out")
    assert list(marks.x) == [10, 20]
    assert [text.split(": ")[1] for text in marks.text] == [
        "2 of 2 seeds not finite, left out",
        "1 of 2 seeds not finite, left out",
    ]
    assert marks.showlegend


def test_without_gaps_there_is_no_mark_in_the_legend() -> None:
    assert named(drawn(group()), "not finite, left out") == []


def single(seed: int, status: str = "succeeded", values: tuple[float, ...] = (1.0, 1.2, 1.4, 1.6)) -> SingleRun:
    return SingleRun(seed, f"run-{seed}", status, STEPS[: len(values)], values)


def test_single_seeds_are_drawn_on_demand_alone() -> None:
    both = group(single=(single(0), single(1, values=(1.0, 1.3, 1.6, 1.9))))
    assert named(drawn(both), "one seed") == []
    first, second = named(drawn(both, single_seeds=True), "one seed")
    np.testing.assert_allclose(first.y, [1.0, 1.2, 1.4, 1.6], rtol=1e-6)
    np.testing.assert_allclose(second.y, [1.0, 1.3, 1.6, 1.9], rtol=1e-6)


def test_a_diverged_seed_is_always_drawn_and_ends_in_a_cross_at_its_last_finite_value() -> None:
    lost = group(single=(single(0), single(1, "diverged", (1.0, 4.0, math.inf))))
    figure = drawn(lost, divergences={"run-1": Divergence(19, 0, "gradient")})
    (curve,) = named(figure, "one seed")
    assert curve.line.dash == "2px,3px"
    (cross,) = named(figure, "diverged")
    assert (cross.x[0], cross.y[0]) == (10, 4.0)
    assert "seed 1" in cross.hovertemplate
    assert "step 19 (gradient, in layer 0)" in cross.hovertemplate


def test_one_depth_has_one_panel_per_layer_side_by_side() -> None:
    figure = drawn(*(group(depth=4, layer=layer) for layer in range(4)))
    assert titles(figure) == ["layer 0", "layer 1", "layer 2", "layer 3"]
    lefts = [figure.layout[f"xaxis{n}"].domain[0] for n in ("", 2, 3, 4)]
    assert lefts == sorted(set(lefts))


def test_a_narrow_page_has_its_panels_below_each_other() -> None:
    figure = drawn(*(group(depth=4, layer=layer) for layer in range(4)), columns=1)
    assert {figure.layout[f"xaxis{n}"].domain for n in ("", 2, 3, 4)} == {(0.0, 1.0)}


def test_several_depths_make_a_row_each_and_say_so() -> None:
    figure = drawn(group(depth=1), group(depth=2), group(depth=2, layer=1))
    assert titles(figure) == ["depth 1 \u00b7 layer 0", "depth 2 \u00b7 layer 0", "depth 2 \u00b7 layer 1"]
    assert figure.layout.yaxis.domain[0] > figure.layout.yaxis2.domain[1]


def test_depths_that_are_shown_together_have_their_own_dash() -> None:
    figure = drawn(group(depth=1), group(depth=4), group(depth=4, layer=1))
    assert [trace.line.dash for trace in named(figure, "RotRNN")] == ["solid", "dash", "dash"]
    (alone,) = named(drawn(group(depth=4)), "RotRNN")
    assert alone.line.dash == "solid"


def test_all_panels_share_one_logarithmic_axis() -> None:
    figure = drawn(group(depth=2), group(depth=2, layer=1, mean=(1.0, 9.0, 9.0, 9.0), maximum=(1.0, 9.0, 9.0, 9.0)))
    assert figure.layout.yaxis.type == "log"
    assert figure.layout.yaxis.range == figure.layout.yaxis2.range
    assert figure.layout.yaxis.range[1] > math.log10(9)


def test_each_name_stands_once_in_the_legend() -> None:
    figure = drawn(*(group(cell, 2, layer) for cell in ("rotrnn", "lru-tied") for layer in (0, 1)))
    shown = [trace.name for trace in figure.data if trace.showlegend]
    assert shown == ["within 10 %", "as before training", "RotRNN", "LRU (tied)"]


def test_the_reference_at_one_is_drawn_where_one_means_something() -> None:
    assert len(named(drawn(group()), "as before training")) == 1
    assert len(named(drawn(group(), statistic=PER_HEAD), "RotRNN's theory, white input")) == 1
    assert [trace.y for trace in drawn(group(), statistic=WHOLE).data if list(trace.y) == [1, 1]] == []


def test_the_axis_holds_every_seed_and_is_not_dwarfed_by_an_interval() -> None:
    wide = group(low=(1e-9,) * 4, high=(1e9,) * 4)
    low, high = bounds([wide], RELATIVE)
    assert low < 0.95
    assert 2.625 < high < 6


def test_nothing_finite_still_makes_a_figure() -> None:
    nothing = (math.nan,) * 4
    figure = drawn(
        group(
            mean=nothing,
            minimum=nothing,
            maximum=nothing,
            low=(None,) * 4,
            high=(None,) * 4,
            n=(0,) * 4,
            non_finite=(2,) * 4,
        )
    )
    assert len(named(figure, "not finite, left out")[0].x) == 4


def test_a_long_comparison_stays_below_two_megabytes() -> None:
    steps = tuple(range(1000))
    curve = tuple(1 + 0.001 * step for step in steps)
    many = dict.fromkeys(("mean", "low", "high", "minimum", "maximum"), curve)
    many |= {"steps": steps, "n": (5,) * 1000, "non_finite": (0,) * 1000}
    groups = [group(cell, 6, layer, **many) for cell in ("rotrnn", "lru-learned", "lru-tied") for layer in range(6)]
    assert len(drawn(*groups).to_json()) < 2_000_000


def test_the_map_holds_the_logarithm_of_growth_by_layer_and_step() -> None:
    (one,) = heat_maps(
        [group(depth=2, layer=1, mean=(2.0, 4.0, 8.0, 2.0)), group(depth=2, layer=0, mean=(1.0, 1.0, 0.5, 1.0))]
    )
    np.testing.assert_allclose(one.growth, np.log([[1, 1, 0.5, 1], [1, 2, 4, 1]]), atol=1e-12)
    assert one.edges == (-5.0, 35.0)


def test_maps_share_one_scale_around_one_that_holds_the_widest() -> None:
    figure = heat_figure([group("rotrnn"), group("lru-tied", mean=(1.0, 0.25, 1.0, 1.0))], "light", columns=3)
    axis = figure.layout.coloraxis
    assert axis.cmax == pytest.approx(math.log(4))
    assert axis.cmin == -axis.cmax
    assert {trace.coloraxis for trace in figure.data} == {"coloraxis"}
    assert 0.0 in axis.colorbar.tickvals


def test_small_changes_do_not_fill_the_scale() -> None:
    figure = heat_figure([group(mean=(1.0, 1.001, 1.002, 1.001))], "light", columns=3)
    assert figure.layout.coloraxis.cmax == pytest.approx(math.log(1.1))


def test_a_step_without_a_finite_mean_is_a_hole_in_the_map() -> None:
    (one,) = heat_maps([group(mean=(1.0, math.inf, math.nan, 2.0))])
    assert list(np.isnan(one.growth[0])) == [False, True, True, False]


def test_maps_that_do_not_fit_stand_below_each_other() -> None:
    groups = [group(cell) for cell in ("rotrnn", "lru-learned", "lru-tied")]
    wide, narrow = (heat_figure(groups, "light", columns=columns) for columns in (3, 1))
    assert wide.layout.xaxis2.domain[0] > wide.layout.xaxis.domain[1]
    assert narrow.layout.xaxis2.domain == narrow.layout.xaxis.domain
    assert narrow.layout.height > wide.layout.height
