"""How far does the hidden norm move, and how sure is that? Every stability number with its interval at a glance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from client import Measure, StabilityRow
from dashboard.figures.frame import dress, log_axis, panel_title
from dashboard.palette import Mode, cell_colour, cell_symbol, cell_title, in_order
from dashboard.words import DOT, TIMES, interval, number, ratio

LINE_HEIGHT, GAP, TOP, BOTTOM = 23, 78, 34, 52
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
    ends in an arrow.
    """
    cells = in_order({row.cell for row in rows})
    depths = sorted({row.depth for row in rows})
    panels = [(m, found) for m in measures if (found := points(m, rows))]
    width = max(1, min(columns, len(panels)))
    lines = max(1, math.ceil(len(panels) / width))
    labels = [_label(cell, depth) for depth in depths for cell in cells if any(_is(row, cell, depth) for row in rows)]
    panel = LINE_HEIGHT * len(labels) + 12
    plot = panel * lines + GAP * (lines - 1)
    figure = make_subplots(
        rows=lines,
        cols=width,
        horizontal_spacing=0.03 if width > 1 else 0,
        vertical_spacing=GAP / plot if lines > 1 else 0,
    )
    for index, (measure, found) in enumerate(panels):
        place = (index // width + 1, index % width + 1)
        end = _end(found)
        for cell in cells:
            for trace in _traces([point for point in found if point.cell == cell], end, mode):
                figure.add_trace(trace, row=place[0], col=place[1])
        panel_title(figure, measure.title.lower(), *place, mode)
        axis = log_axis(0.985, end, TIMES) if measure.unit == "ln" else {"range": [-0.02 * end, end], "nticks": 4}
        figure.update_xaxes(**axis, title_text=_axis_title(measure), row=place[0], col=place[1])
        figure.update_yaxes(showticklabels=place[1] == 1, row=place[0], col=place[1])
    dress(figure, mode, height=plot + TOP + BOTTOM, unified=False, top=TOP)
    for place in ((row, column) for row in range(1, lines + 1) for column in range(1, width + 1)):
        for at in range(1, len(depths)):
            below = sum(label.endswith(f" {depth}") for depth in depths[at:] for label in labels)
            figure.add_hline(
                y=below - 0.5, line={"color": "rgba(128,136,150,.35)", "width": 1}, row=place[0], col=place[1]
            )
    figure.update_yaxes(
        type="category",
        categoryorder="array",
        categoryarray=labels[::-1],
        range=[-0.7, len(labels) - 0.3],
        ticks="",
        showgrid=False,
    )
    return figure.update_layout(showlegend=False)


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


def _is(row: StabilityRow, cell: str, depth: int) -> bool:
    return row.cell == cell and row.depth == depth


def _axis_title(measure: Measure) -> str:
    if measure.unit != "ln":
        return measure.unit
    return "factor of one standard deviation" if measure.name == "spread_over_seeds" else "largest / smallest norm"


def _end(found: Sequence[Point]) -> float:
    """Where a panel ends: behind the widest interval, but not much farther than behind the largest estimate."""
    most = max(point.value for point in found)
    widest = max((point.high for point in found if point.high is not None and math.isfinite(point.high)), default=most)
    return max(1.05, min(widest, most * 2.5) * 1.06)


def _traces(found: Sequence[Point], end: float, mode: Mode) -> list[go.Scatter]:
    if not found:
        return []
    colour = cell_colour(found[0].cell, mode)
    x: list[float | None] = []
    y: list[str | None] = []
    for point in found:
        if point.low is not None and point.high is not None:
            x += [point.low, min(point.high, end), None]
            y += [point.label, point.label, None]
    cut = [point for point in found if point.high is not None and point.high > end]
    return [
        go.Scatter(x=x, y=y, mode="lines", line={"color": colour, "width": 2}, hoverinfo="skip"),
        go.Scatter(
            x=[end] * len(cut),
            y=[point.label for point in cut],
            text=[point.said for point in cut],
            mode="markers",
            marker={"symbol": "triangle-right", "size": 9, "color": colour},
            hovertemplate="%{y}: %{text}<extra></extra>",
            cliponaxis=False,
        ),
        go.Scatter(
            x=[point.value for point in found],
            y=[point.label for point in found],
            text=[point.said for point in found],
            mode="markers",
            name=cell_title(found[0].cell),
            marker={"symbol": cell_symbol(found[0].cell), "size": 9, "color": colour},
            hovertemplate="%{y}: %{text}<extra></extra>",
            cliponaxis=False,
        ),
    ]


def _said(row: StabilityRow, factor: bool) -> str:
    say = ratio if factor else number
    if row.low is None or row.high is None:
        return f"<b>{say(row.estimate)}</b> {DOT} n = {row.n}, too few for an interval"
    return f"<b>{say(row.estimate)}</b> {DOT} 95% {interval(say(row.low), say(row.high))} {DOT} n = {row.n}"
