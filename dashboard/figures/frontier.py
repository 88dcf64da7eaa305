"""What does accuracy cost? Test accuracy with its interval against size, operations or time, one point per network."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from client import AccuracyRow
from dashboard.figures.axes import log_axis, share_axis
from dashboard.figures.canvas import SMALL, Canvas
from dashboard.palette import QUIET, Mode, cell_colour, cell_symbol, cell_title, in_order
from dashboard.sheets import Sheet
from dashboard.words import DOT, interval, number, percent

Costs = Mapping[tuple[str, str, int], float]
"""By task, cell and depth."""


@dataclass(frozen=True)
class Point:
    """A network: what it costs and how well it does."""

    row: AccuracyRow
    cost: float


def points(rows: Sequence[AccuracyRow], costs: Costs) -> list[Point]:
    """The networks that have both an accuracy and a positive cost."""
    found = []
    for row in rows:
        cost = costs.get((row.task, row.cell, row.depth))
        if row.estimate is not None and cost is not None and cost > 0:
            found.append(Point(row, cost))
    return found


def frontier_figure(found: Sequence[Point], axis: str, mode: Mode, *, columns: int) -> go.Figure:
    """One marker per cell and depth on a logarithmic axis of cost; a thin line joins the depths of a cell."""
    canvas = Canvas(mode, [260], page=columns, bottom=52, unified=False)
    costs = [point.cost for point in found]
    ends = [v for p in found for v in (p.row.low, p.row.high, p.row.estimate) if v is not None and math.isfinite(v)]
    low, high = max(0.0, min(ends, default=0.0)), min(1.0, max(ends, default=1.0))
    pad = 0.08 * (high - low) or 0.05
    panel = canvas.panel(
        0,
        0,
        x=log_axis(min(costs) / 1.25, max(costs) * 1.25, most=6 if columns > 1 else 4)
        | {"title_text": f"{axis}, log scale"},
        y=share_axis(max(0.0, low - pad), min(1.0, high + pad)) | {"title_text": "test accuracy"},
    )
    for cell in in_order({point.row.cell for point in found}):
        own = sorted((point for point in found if point.row.cell == cell), key=lambda point: point.row.depth)
        colour, title = cell_colour(cell, mode), cell_title(cell)
        x: list[float | None] = []
        y: list[float | None] = []
        for point in own:
            if point.row.low is not None and point.row.high is not None:
                x, y = [*x, point.cost, point.cost, None], [*y, point.row.low, point.row.high, None]
        bars = {"x": x, "y": y, "mode": "lines", "line": {"color": colour, "width": 1.5}, "hoverinfo": "skip"}
        canvas.add(panel, bars | {"showlegend": False, "legendgroup": cell})
        canvas.add(
            panel,
            {
                "x": [point.cost for point in own],
                "y": [point.row.estimate for point in own],
                "text": [str(point.row.depth) for point in own],
                "hovertext": [_said(point, axis) for point in own],
                "mode": "lines+markers+text",
                "textposition": "middle right",
                "textfont": {"size": SMALL, "color": QUIET[mode]},
                "name": title,
                "legendgroup": cell,
                "line": {"color": colour, "width": 1, "dash": "dot"},
                "marker": {"symbol": cell_symbol(cell), "size": 10, "color": colour},
                "hovertemplate": f"{title}, %{{hovertext}}<extra></extra>",
            },
        )
    return canvas.figure(showlegend=True)


def frontier_sheet(found: Sequence[Point], axis: str) -> Sheet:
    """One line per network."""
    sheet: Sheet = {
        name: [getattr(point.row, name) for point in found]
        for name in ("task", "cell", "depth", "estimate", "low", "high", "n")
    }
    return sheet | {axis: [point.cost for point in found]}


def _said(point: Point, axis: str) -> str:
    row = point.row
    bounds = (
        f" {DOT} 95% {interval(percent(row.low), percent(row.high))}"
        if row.low is not None and row.high is not None
        else ""
    )
    return (
        f"depth {row.depth}: <b>{percent(row.estimate)}</b>{bounds} {DOT} n = {row.n} {DOT} {number(point.cost)} {axis}"
    )
