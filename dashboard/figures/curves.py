"""How did one run learn? Its curves of loss, accuracy, gradient and learning rate."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import plotly.graph_objects as go

from client import Divergence, MetricSeries
from dashboard.figures.axes import Axis, log_axis, share_axis, small, step_axis, whole
from dashboard.figures.canvas import Canvas
from dashboard.palette import DASHES, QUIET, TEXT, Mode, cell_colour, cell_symbol
from dashboard.words import number

SPARSE = 24
"""A series of at most so many points shows where they are."""


@dataclass(frozen=True)
class Curve:
    """A chart of one or more series of a run; `log` where it spans decades, `share` where it lies in [0, 1]."""

    title: str
    axis: str
    keys: tuple[tuple[str, str], ...]
    help: str
    log: bool = False
    share: bool = False


CURVES = (
    Curve(
        "Loss",
        "cross entropy, nat",
        (("train_loss", "training"), ("validation_loss", "validation"), ("test_loss", "test")),
        "Training: the batch of that step, before its update. Validation and test: the whole split, evaluation mode.",
    ),
    Curve(
        "Accuracy",
        "share right",
        (("train_accuracy", "training"), ("validation_accuracy", "validation"), ("test_accuracy", "test")),
        "Share of sequences classified rightly.",
        share=True,
    ),
    Curve(
        "Gradient norm",
        "Euclidean norm, log scale",
        (("gradient_norm", "all parameters"),),
        "Length of the gradient over all parameters, before the update.",
        log=True,
    ),
    Curve(
        "Learning rate",
        "per update",
        (("learning_rate", "network"), ("recurrence_learning_rate", "recurrence")),
        "Warm-up, then cosine. The recurrence (eigenvalues, normaliser, B) has a rate of its own.",
    ),
)


def metric_figure(
    curve: Curve, series: Mapping[str, MetricSeries], cell: str, mode: Mode, *, divergence: Divergence | None = None
) -> go.Figure:
    """One chart of a run's metrics; values that are not finite are gaps with a mark on the floor and their count."""
    present = [(series[key], name) for key, name in curve.keys if key in series and series[key].steps]
    last = max((one.steps[-1] for one, _ in present), default=1)
    canvas = Canvas(mode, [200], bottom=48)
    y = _axis(curve, [value for one, _ in present for value in one.values]) | {"title_text": curve.axis}
    panel = canvas.panel(0, 0, x=step_axis(0, last * 1.01, ticks=6) | {"title_text": "training step"}, y=y)
    shades = (cell_colour(cell, mode), TEXT[mode], QUIET[mode])
    for (one, name), shade, dash in zip(present, shades, DASHES, strict=False):
        lone = len(one.steps) == 1
        canvas.add(
            panel,
            {
                "x": whole(one.steps),
                "y": small(one.values),
                "mode": "markers" if lone else "lines+markers" if len(one.steps) <= SPARSE else "lines",
                "name": name,
                "connectgaps": False,
                "line": {"color": shade, "width": 1.7, "dash": dash},
                "marker": {"size": 10 if lone else 5, "symbol": "star" if lone else cell_symbol(cell), "color": shade},
                "hovertemplate": f"{name}: <b>%{{y:{'.1%' if curve.share else '.4g'}}}</b><extra></extra>",
            },
        )
    for (one, name), shade in zip(present, shades, strict=False):
        gaps = [(step, value) for step, value in zip(one.steps, one.values, strict=True) if not math.isfinite(value)]
        said = [f"{name}: <b>{number(value)}</b>" for _, value in gaps]
        canvas.mark_gaps(panel, [step for step, _ in gaps], said, f"{len(gaps)} not finite", shade)
    canvas.mark_divergence(panel, divergence)
    return canvas.figure(showlegend=True)


def _axis(curve: Curve, values: list[float]) -> Axis:
    finite = [value for value in values if math.isfinite(value) and (value > 0 or not curve.log)]
    if curve.log and finite:
        return log_axis(min(finite) / 1.15, max(finite) * 1.15)
    if curve.share:
        return share_axis(0, min(1.0, max([0.2, *finite]) * 1.12))
    return {}
