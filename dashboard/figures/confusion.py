"""What does the tested network take for what? A map of the class against the class said, each row in shares."""

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.canvas import LETTER, SMALL, Canvas, room
from dashboard.palette import BACKGROUND, GRID, TEXT, UNDER_TEXT, VOID, Mode, blend, cell_colour
from dashboard.words import TIMES

ROW_HEIGHT, LEAST_HEIGHT = 24, 150
LINE = 15
"""Pixels that an upright name takes along the axis."""
WRITTEN_CLASSES = 12
"""With more classes the numbers do not fit into their fields and are told by hovering alone."""


def confusion_figure(
    counts: Sequence[Sequence[int]], names: Sequence[str], cell: str, mode: Mode, *, columns: int
) -> go.Figure:
    """Shares of each class's test examples by the class that the network said.

    Args:
        counts: counts[c][d] examples of class c were taken for d.
        names: What each class is; without names, its number.
        cell: Whose network it was, for the colour.
        mode: Light or dark.
        columns: How wide the page is; names that do not fit beside each other stand upright,
            and where those do not fit either some are left out.
    """
    found = np.array(counts, dtype=np.float64)
    examples = found.sum(axis=1, keepdims=True)
    shares = np.divide(found, examples, out=np.full_like(found, np.nan), where=examples > 0)
    said = list(names) or [str(place) for place in range(len(found))]
    longest = LETTER * max(map(len, said))
    within = room(columns) - longest - 60
    upright = longest * len(said) > within
    every = math.ceil(LINE * len(said) / within) if upright else 1
    bottom = 44 + math.ceil(longest if upright else SMALL)
    canvas = Canvas(mode, [max(LEAST_HEIGHT, ROW_HEIGHT * len(said))], bottom=bottom, unified=False)
    bare = {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": said,
        "tickmode": "linear",
        "ticks": "",
        "showgrid": False,
        "showline": False,
    }
    ends = [-0.5, len(said) - 0.5]
    panel = canvas.panel(
        0,
        0,
        x=bare | {"range": ends, "dtick": every, "tickangle": -90 if upright else 0, "title_text": "taken for"},
        y=bare | {"range": ends[::-1], "title_text": "is"},
    )
    written = (
        {"texttemplate": "%{text}", "textfont": {"size": SMALL, "color": TEXT[mode]}}
        if len(said) <= WRITTEN_CLASSES
        else {}
    )
    canvas.add(
        panel,
        {
            "type": "heatmap",
            "x": said,
            "y": said,
            "z": shares.astype(np.float32),
            "zmin": 0,
            "zmax": 1,
            "text": [[f"{share:.0%}" if share > 0 else "" for share in row] for row in shares],
            "customdata": found.astype(np.int64),
            "colorscale": [[0, GRID[mode]], [1, blend(BACKGROUND[mode], cell_colour(cell, mode), UNDER_TEXT)]],
            "showscale": False,
            "xgap": 1,
            "ygap": 1,
            "hoverongaps": False,
            "hovertemplate": f"%{{y}} taken for %{{x}}: <b>%{{z:.1%}}</b>, {TIMES}%{{customdata:,}}<extra></extra>",
        }
        | written,
    )
    return canvas.figure(plot_bgcolor=VOID[mode])


def class_accuracies(counts: Sequence[Sequence[int]], names: Sequence[str]) -> dict[str, list[object]]:
    """A sheet: each class, how many of its examples were recognised, of how many, and what it is taken for most."""
    said = list(names) or [str(place) for place in range(len(counts))]
    sheet: dict[str, list[object]] = {"Class": [], "Recognised": [], "Examples": [], "Most taken for": []}
    for place, row in enumerate(counts):
        others = [0 if other == place else number for other, number in enumerate(row)]
        worst = max(range(len(others)), key=others.__getitem__)
        sheet["Class"].append(said[place])
        sheet["Recognised"].append(row[place] / sum(row) if sum(row) else None)
        sheet["Examples"].append(sum(row))
        sheet["Most taken for"].append(f"{said[worst]} ({others[worst]:,})" if others[worst] else "")
    return sheet
