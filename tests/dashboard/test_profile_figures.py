"""Do the profiles along the sequence show the numbers and the theory that they should?"""

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from client import ProfileGroup
from dashboard.figures.profiles import profiles_figure
from dashboard.series_sheets import profiles_sheet
from dashboard.words import STATISTICS

RELATIVE, PER_HEAD, WHOLE = STATISTICS
POSITIONS = (1, 10, 100)


def group(cell: str = "rotrnn", layer: int = 0, steps: tuple[int, ...] = (200, 200), **changed: Any) -> ProfileGroup:
    fields: dict[str, Any] = {
        "task": "listops-short",
        "cell": cell,
        "depth": 2,
        "layer": layer,
        "statistic": "per_head",
        "run_ids": ("a", "b"),
        "steps": steps,
        "positions": POSITIONS,
        "n": (2, 2, 2),
        "mean": (0.5, 1.0, 2.0),
        "low": (0.4, 0.9, 1.5),
        "high": (0.6, 1.1, 2.5),
        "non_finite": (0, 0, 0),
    }
    return ProfileGroup(**(fields | changed))


def drawn(*after: ProfileGroup, before: tuple[ProfileGroup, ...] = (), **options: Any) -> go.Figure:
    return profiles_figure(before, after, options.pop("statistic", PER_HEAD), "light", columns=4, **options)


def named(figure: go.Figure, name: str) -> list[Any]:
    return [trace for trace in figure.data if trace.name == name]


def test_a_line_goes_from_place_to_place_with_its_interval_and_step() -> None:
    (line,) = named(drawn(group()), "RotRNN")
    assert list(line.x) == list(POSITIONS)
    np.testing.assert_allclose(line.y, [0.5, 1.0, 2.0])
    assert line.text[0] == "n = 2 \u00b7 95% 0.400 to 0.600"
    assert "step 200" in line.hovertemplate
    (band,) = named(drawn(group()), "RotRNN, 95% interval")
    np.testing.assert_allclose(band.y[:6], [0.6, 1.1, 2.5, 1.5, 0.9, 0.4], rtol=1e-6)


def test_each_layer_has_a_panel_and_both_axes_are_logarithmic() -> None:
    figure = drawn(group(), group(layer=1))
    assert [note.text for note in figure.layout.annotations] == ["layer 0", "layer 1"]
    assert (figure.layout.xaxis2.type, figure.layout.yaxis2.type) == ("log", "log")
    assert figure.layout.xaxis.range[0] < 0 < 2 < figure.layout.xaxis.range[1]


def test_before_training_is_dotted_and_has_no_band() -> None:
    figure = drawn(group(), before=(group(steps=(0, 0), mean=(1.0, 1.0, 1.0)),))
    (line,) = named(figure, "before training")
    assert line.line.dash == "dot"
    np.testing.assert_allclose(line.y, 1.0)
    assert len(named(figure, "RotRNN, 95% interval")) == 1


def test_the_theory_of_the_authors_first_step_is_drawn_for_the_norm_of_one_head_alone() -> None:
    cell, decays = "rotrnn-authors", {"rotrnn-authors": (0.9, 0.999)}
    figure = drawn(group(cell), decays=decays)
    (shape,) = [trace for trace in figure.data if trace.name and "theory before" in trace.name]
    x, y = np.array(shape.x), np.array(shape.y)
    first = y[x == 1]
    np.testing.assert_allclose(sorted(first), [math.sqrt(1 - 0.999**2), math.sqrt(1 - 0.9**2)], rtol=1e-6)
    for statistic in (RELATIVE, WHOLE):
        other = drawn(group(cell), statistic=statistic, decays=decays)
        assert not [trace for trace in other.data if trace.name and "theory before" in trace.name]


def test_the_line_at_one_stands_where_one_has_a_meaning() -> None:
    assert list(named(drawn(group()), PER_HEAD.reference or "")[0].y) == [1, 1]
    assert [trace.name for trace in drawn(group(), statistic=WHOLE).data] == ["RotRNN, 95% interval", "RotRNN"]


def test_a_value_that_is_not_a_number_is_a_gap() -> None:
    lost = group(mean=(0.5, math.nan, 2.0), low=(0.4, None, 1.5), high=(0.6, None, 2.5), n=(2, 0, 2))
    (line,) = named(drawn(lost), "RotRNN")
    assert math.isnan(line.y[1])
    assert line.connectgaps is False


@pytest.mark.parametrize("steps", [(200, 200), (200, 150)])
def test_the_sheet_has_a_line_per_place_and_says_the_steps(steps: tuple[int, int]) -> None:
    sheet = profiles_sheet([group(steps=steps), group("lru-tied", layer=1)])
    assert sheet["position"] == [1, 10, 100, 1, 10, 100]
    assert sheet["steps"][0] == " ".join(map(str, sorted(set(steps))))
    assert sheet["mean"][:3] == [0.5, 1.0, 2.0]
    assert sheet["cell"][-1] == "lru-tied"
