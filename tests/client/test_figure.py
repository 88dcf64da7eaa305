"""Does the stability figure draw the numbers that it was given?"""

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from client import log_axis
from client.figure import stability_figure, write_png
from client.palette import CELL_STYLES, cell_order, cell_style
from client.results import HiddenNormComparison, HiddenNormGroup, SingleRun

STEPS = (0, 50, 100)


def group(cell: str, depth: int, layer: int, *, task: str = "t", broken: bool = False) -> HiddenNormGroup:
    """Two seeds, one of which may diverge after step 50."""
    curves = [[1.0, 1.25, 1.5 + layer], [1.0, 1.75, math.nan if broken else 2.5 + layer]]
    ends = curves[0][2] if broken else 2.0 + layer
    return HiddenNormGroup(
        task, cell, depth, layer, "relative",
        seeds=(0, 1), run_ids=("a", "b"), steps=STEPS, n=(2, 2, 1 if broken else 2),
        mean=(1.0, 1.5, ends), low=(1.0, 1.2, None if broken else 1.6), high=(1.0, 1.8, None if broken else 2.4),
        minimum=(1.0, 1.25, 1.5), maximum=(1.0, 1.75, 2.5), non_finite=(0, 0, int(broken)),
        single=tuple(
            SingleRun(seed, f"r{seed}", "diverged" if broken and seed else "succeeded", STEPS, tuple(curve))
            for seed, curve in enumerate(curves)
        ),
    )  # fmt: skip


def comparison(*groups: HiddenNormGroup, **changes: Any) -> HiddenNormComparison:
    return HiddenNormComparison(**{"statistic": "relative", "warnings": (), "groups": groups, **changes})


def full() -> HiddenNormComparison:
    cells = ("lru-learned", "rotrnn")
    return comparison(*(group(cell, depth, layer) for cell in cells for depth in (1, 3) for layer in range(depth)))


def marked(figure: Figure, panel: str, mark: str) -> list[Any]:
    """The artists of a panel that carry a mark."""
    axes = next(axes for axes in figure.axes if axes.get_label() == panel)
    return [artist for artist in (*axes.lines, *axes.collections, *axes.patches) if artist.get_gid() == mark]


def words(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.texts)


def test_there_is_one_panel_per_depth_and_layer() -> None:
    labels = [axes.get_label() for axes in stability_figure(full()).axes]
    assert labels == ["depth 1 layer 0", "depth 3 layer 0", "depth 3 layer 1", "depth 3 layer 2"]


def test_each_cells_mean_is_drawn_in_its_colour_at_its_steps() -> None:
    lines = {line.get_label(): line for line in marked(stability_figure(full()), "depth 3 layer 2", "mean")}
    assert set(lines) == {"rotrnn", "lru-learned"}
    for cell, line in lines.items():
        np.testing.assert_array_equal(line.get_xdata(), STEPS)
        np.testing.assert_array_equal(line.get_ydata(), [1.0, 1.5, 4.0])
        assert line.get_color() == cell_style(cell).colour


def test_the_band_is_the_interval_and_leaves_out_steps_without_one() -> None:
    figure = stability_figure(comparison(group("rotrnn", 1, 0, broken=True)))
    (band,) = marked(figure, "depth 1 layer 0", "interval")
    corners = {tuple(map(float, corner)) for corner in band.get_paths()[0].vertices}
    assert corners == {(0.0, 1.0), (50.0, 1.2), (50.0, 1.8)}


def test_every_seed_is_a_line_of_its_own_and_a_divergence_has_a_cross_at_its_last_finite_value() -> None:
    figure = stability_figure(comparison(group("lru-tied", 1, 0, broken=True)))
    seeds = marked(figure, "depth 1 layer 0", "seed")
    np.testing.assert_array_equal(seeds[0].get_ydata(), [1.0, 1.25, 1.5])
    np.testing.assert_array_equal(seeds[1].get_ydata(), [1.0, 1.75, math.nan])
    (cross,) = marked(figure, "depth 1 layer 0", "diverged")
    assert (list(cross.get_xdata()), list(cross.get_ydata())) == ([50], [1.75])
    assert "lru-tied depth 1 seed 1" in words(figure)


def test_the_norm_axis_is_logarithmic_shared_and_marks_no_change() -> None:
    figure = stability_figure(full())
    assert {axes.get_yscale() for axes in figure.axes} == {"log"}
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    (reference,) = marked(figure, "depth 1 layer 0", "reference")
    assert list(reference.get_ydata()) == [1.0, 1.0]


def test_only_a_relative_norm_has_a_reference() -> None:
    plain = [dataclasses.replace(one, statistic="whole") for one in full().groups]
    figure = stability_figure(comparison(*plain, statistic="whole"))
    assert marked(figure, "depth 1 layer 0", "reference") == []


def test_axes_rows_legend_and_caption_say_what_is_seen() -> None:
    figure = stability_figure(comparison(*full().groups, warnings=("Seeds differ in d_model",)), task_title="A task")
    text = words(figure)
    for part in ("A task", "n = 2 seeds", "95%", "depth 1", "depth 3", "Seeds differ in d_model."):
        assert part in text
    legend = [label.get_text() for label in figure.legends[0].get_texts()]
    assert legend[:2] == ["RotRNN", "LRU, learned normaliser"]
    assert figure.axes[0].get_ylabel() == "norm / norm at step 0"
    assert [axes.get_xlabel() for axes in figure.axes] == ["", *["training step"] * 3]


def test_nothing_is_written_over_anything_else_or_beyond_the_edge() -> None:
    for groups in (full().groups, (group("rotrnn", 1, 0),), tuple(group("lru-tied", 2, layer) for layer in (0, 1))):
        figure = stability_figure(comparison(*groups), task_title="ListOps short")
        figure.canvas.draw()
        boxes = [text.get_window_extent() for text in figure.texts if text.get_rotation() == 0]
        boxes += [figure.legends[0].get_window_extent(), *(axes.get_tightbbox() for axes in figure.axes)]
        for index, box in enumerate(boxes):
            assert box.x0 >= 0
            assert box.y0 >= 0
            assert box.x1 <= figure.bbox.x1
            assert box.y1 <= figure.bbox.y1
            assert not any(box.overlaps(other) for other in boxes[index + 1 :] if index < len(figure.texts))


def test_two_tasks_or_none_are_not_put_into_one_figure() -> None:
    with pytest.raises(ValueError, match="2: one, two"):
        stability_figure(comparison(group("rotrnn", 1, 0, task="one"), group("rotrnn", 1, 0, task="two")))
    with pytest.raises(ValueError, match="no run has a trace yet"):
        stability_figure(comparison())


def test_the_file_is_a_png_and_nothing_else_is_left_in_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "new" / "figure.png"
    write_png(stability_figure(comparison(group("rotrnn", 1, 0))), path, dpi=50)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.8, 1.25, [0.8, 0.9, 1.0, 1.1, 1.2]),
        (0.9, 4.2, [1.0, 1.2, 1.5, 2.0, 3.0, 4.0]),
        (0.02, 120.0, [0.1, 1.0, 10.0, 100.0]),
        (1e-9, 1e9, [1e-8, 1e-4, 1.0, 1e4, 1e8]),
    ],
)
def test_ticks_are_few_round_numbers(low: float, high: float, ticks: list[float]) -> None:
    found = log_axis.ticks(low, high)
    assert 3 <= len(found) <= 7
    assert found == pytest.approx(ticks)


def test_one_wide_interval_does_not_flatten_what_was_measured() -> None:
    wide = dataclasses.replace(group("rotrnn", 1, 0), low=(1.0, 1e-9, -5.0), high=(1.0, 1e9, math.inf))
    low, high = log_axis.limits([wide])
    assert low > 0.5
    assert high < 5


def test_only_an_axis_around_1_reaches_to_1() -> None:
    large = dataclasses.replace(
        group("rotrnn", 1, 0), mean=(50.0, 60.0, 70.0), low=(None,) * 3, high=(None,) * 3, single=()
    )
    assert log_axis.limits([large], middle=1.0)[0] < 1
    low, high = log_axis.limits([large])
    assert 40 < low < 50
    assert 70 < high < 80


def test_the_cells_of_the_comparison_differ_in_colour_and_in_line() -> None:
    styles = [CELL_STYLES[cell] for cell in ("rotrnn", "lru-learned", "lru-tied", "s5", "s4")]
    assert len({style.colour for style in styles}) == len({style.dashes for style in styles}) == len(styles)


def test_a_cell_that_is_not_listed_has_a_style_that_stays_and_comes_last() -> None:
    assert cell_style("s4d-new") == cell_style("s4d-new")
    assert cell_style("s4d-new").colour == CELL_STYLES["s4d-legs"].colour
    assert cell_style("mega").title == "mega"
    assert sorted(["mega", "lru-tied", "rotrnn"], key=cell_order) == ["rotrnn", "lru-tied", "mega"]
