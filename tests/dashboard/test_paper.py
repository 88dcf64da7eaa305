"""Does a figure come out on paper in every form, with its lines and texts, and its data as CSV?"""

import csv
import io
import math
import re

import pytest
from PIL import Image

from client import HiddenNormGroup, MetricSeries
from dashboard.downloads import written
from dashboard.figures.curves import CURVES, metric_figure
from dashboard.figures.heat import heat_figure
from dashboard.paper import KINDS, printed
from dashboard.paper_marks import WIDTH_IN
from dashboard.series_sheets import metrics_sheet, norms_sheet

LOSS = MetricSeries("train_loss", (0, 10, 20), (2.5, math.nan, 1.5), (1, 1, 1))
GROUP = HiddenNormGroup(
    *("listops-short", "rotrnn", 2, 0, "relative", (0, 1), ("a", "b"), (0, 10, 20), (2, 2, 2)),
    *((1.0, 1.5, 2.0), (0.9, None, 1.8), (1.1, None, 2.2), (0.9, 1.4, 1.9), (1.1, 1.6, 2.1), (0, 0, 0)),
)


def curve() -> object:
    return metric_figure(CURVES[0], {"train_loss": LOSS}, "rotrnn", "light")


@pytest.mark.parametrize(("kind", "begins"), [("pdf", b"%PDF"), ("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_every_form_begins_as_it_should_and_is_the_same_twice(kind: str, begins: bytes) -> None:
    assert kind in KINDS
    once = printed(curve(), kind)
    assert once.startswith(begins)
    assert printed(curve(), kind) == once


def test_paper_is_180_mm_wide() -> None:
    picture = Image.open(io.BytesIO(printed(curve(), "png")))
    assert picture.width == pytest.approx(300 * WIDTH_IN, abs=1)
    size = re.search(r'width="([\d.]+)pt"', printed(curve(), "svg").decode())
    assert size is not None
    assert float(size[1]) == pytest.approx(180 / 25.4 * 72, abs=0.01)


def test_titles_axes_and_legend_stand_on_paper_as_letters() -> None:
    drawing = printed(curve(), "svg").decode()
    for text in ("training step", "cross entropy, nat", "training", "1 not finite"):
        assert f">{text}<" in drawing


def test_a_heat_map_keeps_its_panels_and_its_colour_bar() -> None:
    other = HiddenNormGroup(**{**vars(GROUP), "cell": "lru-learned"})
    drawing = printed(heat_figure([GROUP, other], "light", columns=3), "svg").decode()
    assert "times its start" in drawing
    assert drawing.count("<image") == 3  # two maps and the bar
    assert "RotRNN" in drawing


def test_the_csv_keeps_numbers_to_the_last_bit() -> None:
    third = HiddenNormGroup(**{**vars(GROUP), "mean": (1 / 3, 0.1 + 0.2, math.nan)})
    rows = list(csv.DictReader(io.StringIO(written(lambda: norms_sheet([third])))))
    assert [float(row["mean"]) for row in rows[:2]] == [1 / 3, 0.1 + 0.2]
    assert rows[2]["mean"] == "nan"
    assert rows[1]["low"] == ""
    assert [row["step"] for row in rows] == ["0", "10", "20"]


def test_the_csv_of_a_curve_has_a_line_per_metric_and_step() -> None:
    sheet = metrics_sheet({"train_loss": LOSS}, ["train_loss", "test_loss"])
    assert sheet["metric"] == ["train_loss"] * 3
    assert sheet["step"] == [0, 10, 20]
