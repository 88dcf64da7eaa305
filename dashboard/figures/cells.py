"""How far is each run of a sweep, and what came out? The grid as a matrix of cells, shaded by state or by accuracy."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import plotly.graph_objects as go

from client import Run
from dashboard.figures.canvas import SMALL, Canvas
from dashboard.grids import Matrix
from dashboard.palette import BACKGROUND, STATUS_COLOURS, STATUSES, TEXT, UNDER_TEXT, Mode, blend, status_look
from dashboard.sheets import Sheet, accuracy, title, why
from dashboard.words import DOT, percent

Shade = Literal["State", "Accuracy"]
ROW_HEIGHT = 34
LETTERS, SIGNS = 14, 48
"""Up to so many columns a cell has room for sign and number, and for its sign alone; hovering tells the rest."""
MOST_TICKS = 36
"""At most so many columns are named, on a narrow page a quarter of them."""


def cells_figure(matrix: Matrix, shade: Shade, mode: Mode, *, columns: int) -> go.Figure:
    """One cell per run: its state as a sign, its accuracy in percent; a click opens the run.

    Args:
        matrix: The runs in rows and columns.
        shade: Cells are coloured by state, or from pale to full by accuracy.
        mode: Light or dark.
        columns: How wide the page is; on a narrow one the rows' names stand above their cells' order.
    """
    rows, width = len(matrix.rows), len(matrix.columns)
    canvas = Canvas(mode, [max(1, rows) * ROW_HEIGHT], bottom=8, unified=False)
    names = [_cut(name, 44) if columns > 1 else _folded(name) for name in matrix.rows]
    most = MOST_TICKS if columns > 1 else MOST_TICKS // 4
    panel = canvas.panel(
        0,
        0,
        x=_bare(range(width), [name.removeprefix(f"{matrix.across} ") for name in matrix.columns], width, most)
        | {"side": "top", "title_text": matrix.across if width > 1 else ""},
        y=_bare(range(rows), names, rows, rows) | {"range": [rows - 0.5, -0.5]},
    )
    z, scale = _shades(matrix, shade, mode)
    places = list(matrix.runs)
    canvas.add(
        panel,
        {
            "type": "heatmap",
            "x": list(range(width)),
            "y": list(range(rows)),
            "z": z,
            "zmin": 0.0,
            "zmax": 1.0,
            "colorscale": scale,
            "showscale": False,
            "xgap": 2,
            "ygap": 2,
            "hoverinfo": "skip",
        },
    )
    lettered, signed = (width <= most // (1 if columns > 1 else 2) for most in (LETTERS, SIGNS))
    canvas.add(
        panel,
        {
            "x": [column for _, column in places],
            "y": [row for row, _ in places],
            "text": [_letters(matrix.runs[place], alone=not lettered) for place in places],
            "mode": "markers+text" if signed else "markers",
            "textposition": "middle center",
            "textfont": {"size": SMALL, "color": TEXT[mode]},
            "marker": {"symbol": "square", "size": 26, "opacity": 0.0, "color": TEXT[mode]},
            "customdata": [matrix.runs[place].id for place in places],
            "hovertext": [_said(matrix, place) for place in places],
            "hovertemplate": "%{hovertext}<extra></extra>",
            "name": "runs",
        },
    )
    return canvas.figure(legend=False, top=36)


def cells_sheet(matrix: Matrix) -> Sheet:
    """One line per cell that has a run."""
    places = sorted(matrix.runs)
    runs = [matrix.runs[place] for place in places]
    return {
        "row": [matrix.rows[row] for row, _ in places],
        "column": [matrix.columns[column] for _, column in places],
        "run": [run.id for run in runs],
        "status": [run.status for run in runs],
        "step": [run.step for run in runs],
        "total_steps": [run.total_steps for run in runs],
        "accuracy": [accuracy(run) / 100 for run in runs],
        "why": [why(run) for run in runs],
    }


def _bare(ticks: Sequence[int], texts: Sequence[str], length: int, most: int) -> dict[str, object]:
    every = max(1, math.ceil(length / most))
    return {
        "range": [-0.5, length - 0.5],
        "tickmode": "array",
        "tickvals": list(ticks)[::every],
        "ticktext": list(texts)[::every],
        "showgrid": False,
        "showline": False,
        "ticks": "",
        "fixedrange": True,
    }


def _shades(matrix: Matrix, shade: Shade, mode: Mode) -> tuple[list[list[float | None]], list[list[float | str]]]:
    """Values in [0, 1] by row and column, and the colours that they mean."""
    z: list[list[float | None]] = [[None] * len(matrix.columns) for _ in matrix.rows]
    if shade == "State":
        known = list(STATUSES)
        for (row, column), run in matrix.runs.items():
            at = known.index(run.status) if run.status in known else 0
            z[row][column] = (at + 0.5) / len(known)
        colours = [
            blend(BACKGROUND[mode], STATUS_COLOURS[mode][status_look(name).colour], 0.14 if name == "queued" else 0.3)
            for name in known
        ]
        steps: list[list[float | str]] = []
        for at, colour in enumerate(colours):
            steps += [[at / len(known), colour], [(at + 1) / len(known), colour]]
        return z, steps
    right = {place: accuracy(run) for place, run in matrix.runs.items()}
    finite = [value for value in right.values() if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    for (row, column), value in right.items():
        if math.isfinite(value):
            z[row][column] = (value - low) / (high - low) if high > low else 0.5
    full = blend(BACKGROUND[mode], STATUS_COLOURS[mode]["green"], UNDER_TEXT)
    pale = blend(BACKGROUND[mode], STATUS_COLOURS[mode]["green"], 0.06)
    return z, [[0.0, pale], [1.0, full]]


def _letters(run: Run, *, alone: bool) -> str:
    """Sign and number, or the sign alone, which says nothing where a run has succeeded."""
    sign = status_look(run.status).sign
    if alone:
        return "!" if run.stuck else "" if run.status == "succeeded" else sign
    if run.status == "running":
        return f"{sign} {100 * run.progress:.0f} %"
    value = accuracy(run)
    sign += " !" if run.stuck else ""
    return f"{sign} {value:.1f}" if np.isfinite(value) else sign


def _said(matrix: Matrix, place: tuple[int, int]) -> str:
    run = matrix.runs[place]
    value = accuracy(run)
    result = f" {DOT} accuracy {percent(value / 100)}" if math.isfinite(value) else ""
    reason = f"<br>{_safe(why(run))}" if why(run) else ""
    where = f"{_safe(matrix.rows[place[0]])} {DOT} {_safe(matrix.columns[place[1]])}"
    state = f"{status_look(run.status).word} at step {run.step:,} of {run.total_steps:,}"
    return f"<b>{_safe(title(run))}</b><br>{where}<br>{state}{result}{reason}"


def _safe(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _folded(text: str) -> str:
    """A row's name for a narrow page: its first part above the others."""
    first, _, rest = text.partition(f" {DOT} ")
    return "<br>".join(_cut(part, 22) for part in (first, rest) if part)


def _cut(text: str, most: int) -> str:
    return _safe(text if len(text) <= most else text[: most - 1] + "\u2026")
