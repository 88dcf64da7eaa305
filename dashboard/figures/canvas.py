"""How is every figure framed? Panels in rows and columns, axes, legend and marks, the same everywhere."""

import math
from collections.abc import Sequence
from typing import Any

# Not used here: plotly looks at a pandas that is there, also at one that another session's thread has half imported.
import pandas as pd  # type: ignore[import-untyped]  # noqa: F401
import plotly.graph_objects as go

from client import Divergence
from dashboard.figures.axes import Axis
from dashboard.palette import AXIS, GRID, QUIET, STATUS_COLOURS, TEXT, Mode

FONT_SIZE, SMALL = 13, 12
LETTER = 6.6
"""Pixels that a letter of a tick's text takes, about."""
LEGEND_ROW, LEGEND_MARK, TITLE = 21, 52, 28
"""Pixels: height of a row of the legend, width of an entry without its letters, height of the panels' titles."""
ROOM = (340, 510, 800)
"""Width of a figure on the narrowest page that has one column of panels, two, and more, in pixels."""
MODEBAR: dict[str, Any] = {
    "displaylogo": False,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
    "toImageButtonOptions": {"format": "svg"},
    "responsive": True,
}
Trace = dict[str, Any]


class Canvas:
    """A figure in the making: plain values, which plotly checks once, at the end.

    Args:
        mode: Light or dark.
        heights: Height of each row of panels, in pixels, top to bottom.
        columns: Panels side by side.
        gap_x: Space between columns, as a share of the width.
        gap_y: Space between rows, in pixels.
        page: How many panels the reader's page holds side by side; what the legend needs depends on it.
        bottom: Space below the last row, in pixels, for ticks and the axis title.
        unified: Hovering tells all values at that place along x, not the nearest alone.
    """

    def __init__(
        self,
        mode: Mode,
        heights: Sequence[int],
        columns: int = 1,
        *,
        gap_x: float = 0.03,
        gap_y: int = 62,
        page: int = 1,
        bottom: int = 50,
        unified: bool = True,
    ) -> None:
        self.mode = mode
        self.traces: list[Trace] = []
        self._places: dict[tuple[int, int], str] = {}
        self._shares: list[tuple[float, float]] = []
        plot = sum(heights) + gap_y * (len(heights) - 1)
        above = 0
        for height in heights:
            self._shares.append((max(0.0, 1 - (above + height) / plot), 1 - above / plot))
            above += height + gap_y
        self._width = (1 - gap_x * (columns - 1)) / columns
        self._gap_x = gap_x
        self._left = 0
        self._plot = plot
        self._room = room(page)
        self.layout: dict[str, Any] = {
            "margin": {"r": 22, "b": bottom, "pad": 0},
            "font": {"size": FONT_SIZE, "color": TEXT[mode]},
            "hovermode": "x unified" if unified else "closest",
            "hoverlabel": {"font": {"size": SMALL}, "namelength": -1},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "uirevision": "kept",
            "legend": {
                "orientation": "h",
                "x": 0,
                "xanchor": "left",
                "y": 1,
                "yref": "container",
                "yanchor": "top",
                "font": {"size": FONT_SIZE, "color": TEXT[mode]},
                "title": {"text": ""},
                "tracegroupgap": 0,
            },
            "annotations": [],
            "shapes": [],
        }

    def panel(self, row: int, column: int, *, title: str = "", x: Axis, y: Axis) -> str:
        """Put up a panel, counted from 0 both ways; returns its name for `add`, which plotly leaves empty at first.

        Of panels in a column whose x axes are alike, the lowest alone has ticks' texts and a title.
        """
        name = str(len(self._places) + 1) if self._places else ""
        self._places[row, column] = name
        left = column * (self._width + self._gap_x)
        self.layout[f"xaxis{name}"] = self._axis(x) | {
            "domain": [left, min(1.0, left + self._width)],
            "anchor": f"y{name}",
        }
        if column == 0:
            self._left = max(self._left, _width(y))
        self.layout[f"yaxis{name}"] = self._axis(y) | {
            "domain": self._shares[row],
            "anchor": f"x{name}",
        }
        if title:
            self.note(name, title, x=0, xref=f"x{name} domain", xanchor="left")
        return name

    def add(self, panel: str, trace: Trace) -> None:
        """Draw a trace in a panel; a scatter unless it says otherwise."""
        self.traces.append({"type": "scatter", "xaxis": f"x{panel}", "yaxis": f"y{panel}", **trace})

    def note(self, panel: str, text: str, **changed: Any) -> None:
        """Write a text above a panel."""
        note = {
            "text": text,
            "y": 1,
            "yref": f"y{panel} domain",
            "yanchor": "bottom",
            "yshift": 2,
            "showarrow": False,
            "font": {"size": FONT_SIZE, "color": TEXT[self.mode]},
        }
        self.layout["annotations"].append(note | changed)

    def mark_gaps(
        self, panel: str, steps: Sequence[int], said: Sequence[str], name: str, colour: str, **changed: Any
    ) -> None:
        """Mark on a panel's floor the steps whose values are not finite; their curves have gaps there."""
        if not steps:
            return
        floor = 100 + int(panel or 1)
        self.layout[f"yaxis{floor}"] = {
            "overlaying": f"y{panel}",
            "range": [0, 1],
            "visible": False,
            "fixedrange": True,
        }
        marks = {
            "x": list(steps),
            "y": [0.0] * len(steps),
            "yaxis": f"y{floor}",
            "text": list(said),
            "mode": "markers",
            "name": name,
            "cliponaxis": False,
            "marker": {"symbol": "triangle-up-open", "size": 9, "color": colour, "line": {"width": 1.5}},
            "hovertemplate": "%{text}<extra></extra>",
        }
        self.add(panel, marks | changed)

    def mark_divergence(self, panel: str, divergence: Divergence | None) -> None:
        """A dotted line where a run met its first value that is not finite."""
        if divergence is None:
            return
        line = {"color": STATUS_COLOURS[self.mode]["yellow"], "width": 1.5, "dash": "dot"}
        self.rule(panel, line, x=divergence.step)
        font = {"size": SMALL, "color": line["color"]}
        self.note(
            panel,
            f"diverged at {divergence.step:,}",
            x=divergence.step,
            xref=f"x{panel}",
            xanchor="right",
            yshift=0,
            font=font,
        )

    def rule(self, panel: str, line: dict[str, Any], *, x: float | None = None, y: float | None = None) -> None:
        """A straight line across a panel: upright at x, or level at y."""
        upright = {"x0": x, "x1": x, "xref": f"x{panel}", "y0": 0, "y1": 1, "yref": f"y{panel} domain"}
        level = {"y0": y, "y1": y, "yref": f"y{panel}", "x0": 0, "x1": 1, "xref": f"x{panel} domain"}
        self.layout["shapes"].append({"type": "line", "line": line, **(level if x is None else upright)})

    def figure(self, *, legend: bool = True, top: int = 6, **changed: Any) -> go.Figure:
        """The figure.

        Args:
            legend: Whether it has a legend.
            top: Space in pixels above legend and titles, for what else stands there.
            changed: Parts of the layout that take the place of others.
        """
        named = [t for t in self.traces if "name" in t and t.get("showlegend", True)] if legend else []
        names = list(dict.fromkeys(trace["name"] for trace in named))
        beside = self._left + self.layout["margin"]["r"]
        top += _legend_height(names, self._room - beside, grid=any("legendgroup" not in t for t in named))
        top += TITLE if self.layout["annotations"] else 0
        for (row, column), name in self._places.items():
            axis = self.layout[f"xaxis{name}"]
            below = self._places.get((row + 1, column))
            if below is not None and _alike(axis, self.layout[f"xaxis{below}"]):
                axis |= {"showticklabels": False, "title": axis["title"] | {"text": ""}}
        margin = self.layout["margin"] | {"l": self._left, "t": top}
        height = self._plot + top + margin["b"]
        framed = {"margin": margin, "height": height, "showlegend": bool(names)}
        return go.Figure({"data": self.traces, "layout": self.layout | framed | changed})

    def _axis(self, given: Axis) -> Axis:
        title = given.get("title_text", "")
        common: Axis = {
            "showgrid": True,
            "gridcolor": GRID[self.mode],
            "gridwidth": 1,
            "zeroline": False,
            "showline": True,
            "linecolor": AXIS[self.mode],
            "linewidth": 1,
            "ticks": "outside",
            "ticklen": 4,
            "tickcolor": AXIS[self.mode],
            "tickfont": {"size": SMALL, "color": QUIET[self.mode]},
            # Axes that look for their own margins take twice as long to draw; `_width` knows them before.
            "automargin": False,
            "tickangle": 0,
            "title": {"text": title, "standoff": 7, "font": {"size": SMALL, "color": QUIET[self.mode]}},
        }
        return common | {name: value for name, value in given.items() if name != "title_text"}


def _alike(axis: Axis, other: Axis) -> bool:
    own = {"anchor", "domain", "title", "showticklabels"}
    return {k: v for k, v in axis.items() if k not in own} == {k: v for k, v in other.items() if k not in own}


def _legend_height(names: Sequence[str], within: int, *, grid: bool) -> int:
    """Pixels; in a grid all entries are as wide as the widest."""
    widths = [LEGEND_MARK + LETTER * 1.1 * len(name) for name in names]
    if grid and sum(widths) > within:
        widths = [max(widths)] * len(widths)
    rows, left = 0, 0.0
    for width in widths:
        if width > left:
            rows, left = rows + 1, float(within)
        left -= width
    return LEGEND_ROW * rows


def room(columns: int) -> int:
    """The least width of a figure, in pixels, on a page that has so many columns of panels."""
    return ROOM[min(columns, len(ROOM)) - 1]


def _width(y: Axis) -> int:
    """Pixels left of a panel: the longest text of its ticks, or a number of six figures, and the title."""
    texts = y.get("ticktext") or y.get("categoryarray") or ("0.0000",)
    lines = [line for text in texts for line in text.split("<br>")]
    ticks = LETTER * max(map(len, lines)) if y.get("showticklabels", True) else 0
    return 12 + math.ceil(ticks) + (SMALL + 10 if y.get("title_text") else 0)
