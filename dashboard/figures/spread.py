"""How far does the hidden norm move, and how sure is that? Every stability number with its interval at a glance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from client import Measure, StabilityRow
from dashboard.figures.axes import Axis, count_axis, log_axis
from dashboard.figures.canvas import Canvas, Trace
from dashboard.palette import AXIS, Mode, cell_colour, cell_symbol, cell_title, in_order
from dashboard.words import DOT, TIMES, interval, number, ratio

LINE_HEIGHT = 23
LARGEST_LOG = 300.0


@dataclass(frozen=True)
class Point:
    """One estimate as it is drawn: factors for spreads of logarithms, plain values otherwise."""

    cell: str
    label: str
    value: float
    low: float | None
    high: float | None
    said: str


def spread_figure(measures: Sequence[Measure], rows: Sequence[StabilityRow], mode: Mode, *, columns: int) -> go.Figure:
    """One panel per measure, one line per depth and cell: the estimate with its 95% interval.

    Spreads of logarithms are drawn as factors from 1 on; other measures as they are. An interval that leaves its panel
    ends in an arrow. In one column, on a narrow page, lines are named by depth alone and a legend names the cells.
    """
    cells = in_order({row.cell for row in rows})
    pairs = sorted({(row.depth, cells.index(row.cell)) for row in rows})
    labels = [_label(cells[at], depth) for depth, at in pairs]
    panels = [(measure, found) for measure in measures if (found := points(measure, rows))]
    width = max(1, min(columns, len(panels)))
    lines = max(1, math.ceil(len(panels) / width))
    canvas = Canvas(
        mode,
        [LINE_HEIGHT * len(labels) + 12] * lines,
        width,
        gap_y=80,
        page=columns,
        bottom=54,
        unified=False,
    )
    narrow = columns == 1
    depths = [depth for depth, _ in pairs]
    breaks = [len(pairs) - at - 0.5 for at in range(1, len(pairs)) if depths[at] != depths[at - 1]]
    for index, (measure, found) in enumerate(panels):
        row, column = divmod(index, width)
        end = _end(found)
        panel = canvas.panel(
            row,
            column,
            title=measure.title.lower(),
            x=_axis(measure, end, most=4 if narrow else 6),
            y={
                "type": "category",
                "categoryorder": "array",
                "categoryarray": labels[::-1],
                "range": [-0.7, len(labels) - 0.3],
                "ticks": "",
                "showgrid": False,
                "showticklabels": column == 0,
                **(_depths_alone(labels, depths) if narrow else {}),
            },
        )
        for cell in cells:
            for trace in _traces([point for point in found if point.cell == cell], end, mode):
                canvas.add(panel, trace | {"showlegend": "name" in trace and not index})
        for level in breaks:
            canvas.rule(panel, {"color": AXIS[mode], "width": 1}, y=level)
    return canvas.figure(legend=narrow)


def _depths_alone(labels: Sequence[str], depths: Sequence[int]) -> Axis:
    """Each depth written once, at its first line."""
    first = [at for at, depth in enumerate(depths) if depth not in depths[:at]]
    return {
        "tickmode": "array",
        "tickvals": [labels[at] for at in first],
        "ticktext": [f"depth {depths[at]}" for at in first],
    }


def points(measure: Measure, rows: Sequence[StabilityRow]) -> list[Point]:
    """The estimates of one measure that can be drawn."""
    factor = measure.unit == "ln"

    def at(value: float | None) -> float | None:
        return value if value is None or not factor else math.exp(min(value, LARGEST_LOG))

    found = []
    for row in rows:
        value = at(row.estimate)
        if row.measure == measure.name and value is not None and math.isfinite(value):
            said = _said(row, factor)
            found.append(Point(row.cell, _label(row.cell, row.depth), value, at(row.low), at(row.high), said))
    return found


def _label(cell: str, depth: int) -> str:
    return f"{cell_title(cell)} {DOT} depth {depth}"


def _axis(measure: Measure, end: float, *, most: int) -> Axis:
    if measure.unit != "ln":
        return count_axis(-0.02 * end, end) | {"title_text": measure.unit}
    deviation = measure.name == "spread_over_seeds"
    title = "factor of one standard deviation" if deviation else "largest / smallest norm"
    return log_axis(0.985, end, TIMES, most=most) | {"title_text": title}


def _end(found: Sequence[Point]) -> float:
    """Where a panel ends: behind the widest interval, but not much farther than behind the largest estimate."""
    most = max(point.value for point in found)
    widest = max((point.high for point in found if point.high is not None and math.isfinite(point.high)), default=most)
    return max(1.05, min(widest, most * 2.5) * 1.06)


def _traces(found: Sequence[Point], end: float, mode: Mode) -> list[Trace]:
    if not found:
        return []
    colour = cell_colour(found[0].cell, mode)
    x: list[float | None] = []
    y: list[str | None] = []
    for point in found:
        if point.low is not None and point.high is not None:
            x += [point.low, min(point.high, end), None]
            y += [point.label, point.label, None]
    bars = {"x": x, "y": y, "mode": "lines", "line": {"color": colour, "width": 2}, "hoverinfo": "skip"}
    cut = [point for point in found if point.high is not None and point.high > end]
    arrows = _markers(cut, [end] * len(cut), {"symbol": "triangle-right", "size": 9, "color": colour})
    symbol = cell_symbol(found[0].cell)
    estimates = _markers(found, [point.value for point in found], {"symbol": symbol, "size": 9, "color": colour})
    return [bars, *([arrows] if cut else []), estimates | {"name": cell_title(found[0].cell)}]


def _markers(found: Sequence[Point], x: list[float], marker: dict[str, Any]) -> Trace:
    return {
        "x": x,
        "y": [point.label for point in found],
        "text": [point.said for point in found],
        "mode": "markers",
        "marker": marker,
        "hovertemplate": "%{y}: %{text}<extra></extra>",
        "cliponaxis": False,
    }


def _said(row: StabilityRow, factor: bool) -> str:
    say = ratio if factor else number
    if row.low is None or row.high is None:
        return f"<b>{say(row.estimate)}</b> {DOT} n = {row.n}, too few for an interval"
    return f"<b>{say(row.estimate)}</b> {DOT} 95% {interval(say(row.low), say(row.high))} {DOT} n = {row.n}"
