"""How does a metric go in several cells? Mean over seeds with its interval, one panel per depth, along step or time."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from client.seeds import MetricGroup
from dashboard.figures.axes import Axis, log_axis, share_axis, small, step_axis
from dashboard.figures.bands import band
from dashboard.figures.canvas import Canvas, Trace
from dashboard.grids import name_of
from dashboard.palette import DASHES, Mode, cell_colour, cell_symbol, cell_title, in_order
from dashboard.words import DOT, number

ROW_HEIGHT = 230
GroupKey = tuple[str, str, int]


@dataclass(frozen=True)
class Metric:
    """A metric by its key: title, axis, and whether it is a share in [0, 1] or spans decades."""

    key: str
    title: str
    axis: str
    share: bool = False
    log: bool = False


METRICS = (
    Metric("validation_accuracy", "Validation accuracy", "share right", share=True),
    Metric("validation_loss", "Validation loss", "cross entropy, nat"),
    Metric("test_accuracy", "Test accuracy", "share right", share=True),
    Metric("train_loss", "Training loss", "cross entropy, nat"),
    Metric("train_accuracy", "Training accuracy", "share right", share=True),
    Metric("gradient_norm", "Gradient norm", "Euclidean norm", log=True),
    Metric("learning_rate", "Learning rate", "per update"),
    Metric("recurrence_learning_rate", "Learning rate of the recurrence", "per update"),
    Metric("tokens_per_s", "Tokens per second", "tokens per second"),
)


@dataclass(frozen=True)
class Along:
    """What goes along x: its title, and how much of it one step is, by task, cell and depth; None counts steps."""

    title: str
    per_step: Mapping[GroupKey, float] | None = None


def metrics_figure(
    groups: Sequence[MetricGroup], metric: Metric, along: Along, mode: Mode, *, columns: int
) -> go.Figure:
    """One panel per depth; colour and marker say the cell, the dash the further fields.

    A group whose pace is not known is left out where something else than steps goes along.
    """
    drawn = [group for group in groups if group.steps and (along.per_step is None or _key(group) in along.per_step)]
    depths = sorted({group.depth for group in drawn})
    width = max(1, min(columns, len(depths)))
    rows = max(1, math.ceil(len(depths) / width))
    canvas = Canvas(mode, [ROW_HEIGHT] * rows, width, page=columns, bottom=52)
    fields = list(dict.fromkeys(json.dumps(group.fields, sort_keys=True) for group in drawn))
    last = max((_x(group, along)[-1] for group in drawn), default=1.0)
    y = _y_axis(drawn, metric)
    floor = 10 ** y["range"][0] if y.get("type") == "log" else -math.inf
    named: set[str] = set()
    for at, depth in enumerate(depths):
        row, column = divmod(at, width)
        panel = canvas.panel(
            row,
            column,
            title=f"depth {depth}",
            x=_x_axis(last, along) | {"title_text": along.title},
            y=y | {"showticklabels": column == 0, "title_text": "" if column else metric.axis},
        )
        inside = [group for group in drawn if group.depth == depth]
        order = in_order({group.cell for group in inside})
        for group in sorted(inside, key=lambda g: (order.index(g.cell), json.dumps(g.fields, sort_keys=True))):
            dash = DASHES[fields.index(json.dumps(group.fields, sort_keys=True)) % len(DASHES)]
            for trace in _traces(group, metric, along, mode, dash, floor):
                shown = trace.get("showlegend", True) and trace["name"] not in named
                named |= {trace["name"]} if shown else set()
                canvas.add(panel, trace | {"showlegend": shown})
            _mark(canvas, panel, group, along)
    return canvas.figure()


def line_title(group: MetricGroup) -> str:
    """A group's name in the legend: its cell and further fields."""
    return f" {DOT} ".join([cell_title(group.cell), *(f"{name_of(k)} {v}" for k, v in group.fields.items())])


def metric_sheet(groups: Sequence[MetricGroup]) -> dict[str, list[Any]]:
    """One line per group and step."""
    pairs = [(group, at) for group in groups for at in range(len(group.steps))]
    sheet: dict[str, list[Any]] = {name: [getattr(g, name) for g, _ in pairs] for name in ("task", "cell", "depth")}
    sheet["fields"] = [json.dumps(group.fields) if group.fields else "" for group, _ in pairs]
    sheet["step"] = [group.steps[at] for group, at in pairs]
    for name in ("n", "mean", "low", "high", "median", "iqm", "minimum", "maximum", "non_finite"):
        sheet[name] = [getattr(group, name)[at] for group, at in pairs]
    return sheet


def _key(group: MetricGroup) -> GroupKey:
    return group.task, group.cell, group.depth


def _x(group: MetricGroup, along: Along) -> list[float]:
    scale = 1.0 if along.per_step is None else along.per_step[_key(group)]
    return [step * scale for step in group.steps]


def _x_axis(last: float, along: Along) -> Axis:
    end = last * 1.02 or 1
    if along.per_step is None:
        return step_axis(0, end)
    return {"range": [0, end], "nticks": 5, "tickformat": "~s" if last >= 10_000 else ",~r"}


def _y_axis(groups: Sequence[MetricGroup], metric: Metric) -> Axis:
    values = [v for g in groups for v in (*g.minimum, *g.maximum) if math.isfinite(v) and (v > 0 or not metric.log)]
    if metric.log and values:
        return log_axis(min(values) / 1.15, max(values) * 1.15)
    if metric.share:
        return share_axis(0, min(1.0, max([0.2, *values]) * 1.12))
    if not values:
        return {}
    pad = 0.06 * (max(values) - min(values)) or 0.05 * abs(max(values)) or 1.0
    return {"range": [min(values) - pad, max(values) + pad]}


def _traces(group: MetricGroup, metric: Metric, along: Along, mode: Mode, dash: str, floor: float) -> list[Trace]:
    colour, title, x = cell_colour(group.cell, mode), line_title(group), _x(group, along)
    said = [
        f"n = {n}" + (f" {DOT} 95% {number(a)} to {number(b)}" if a is not None and b is not None else "")
        for n, a, b in zip(group.n, group.low, group.high, strict=True)
    ]
    lone = len(x) == 1
    line = {
        "x": small(x),
        "y": small(group.mean),
        "text": said,
        "mode": "lines+markers",
        "name": title,
        "legendgroup": title,
        "connectgaps": False,
        "line": {"color": colour, "width": 2.0, "dash": dash},
        "marker": {"symbol": cell_symbol(group.cell), "size": 10 if lone else 6, "maxdisplayed": 10},
        "hovertemplate": f"{title}: <b>%{{y:{'.1%' if metric.share else '.4g'}}}</b> {DOT} %{{text}}<extra></extra>",
    }
    edges = (floor, math.inf)
    return [*band(x, group.low, group.high, colour=colour, title=title, group=title, edges=edges), line]


def _mark(canvas: Canvas, panel: str, group: MetricGroup, along: Along) -> None:
    """Mark where seeds were left out because their value is not finite."""
    x = _x(group, along)
    at = [index for index, count in enumerate(group.non_finite) if count]
    canvas.mark_gaps(
        panel,
        [x[index] for index in at],  # type: ignore[misc]
        [f"{line_title(group)}: {group.non_finite[index]} not finite, left out" for index in at],
        "not finite, left out",
        cell_colour(group.cell, canvas.mode),
        legendgroup="gaps",
        showlegend=False,
    )
