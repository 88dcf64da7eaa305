"""How is every figure framed? Axes, ticks, hover and size, the same everywhere."""

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dashboard.palette import AXIS, GRID, QUIET, TEXT, Mode

FONT_SIZE = 13
SMALL = 12
MODEBAR: dict[str, Any] = {
    "displaylogo": False,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
    "toImageButtonOptions": {"format": "svg"},
    "responsive": True,
}


def dress(figure: go.Figure, mode: Mode, *, height: int, unified: bool = True, top: int = 56) -> go.Figure:
    """Give a figure the common look; axes keep what their builder set."""
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 8, "t": top, "b": 8, "pad": 0},
        font={"size": FONT_SIZE, "color": TEXT[mode]},
        hovermode="x unified" if unified else "closest",
        hoverlabel={"font": {"size": SMALL}, "namelength": -1},
        legend={
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "font": {"size": FONT_SIZE, "color": TEXT[mode]},
            "itemsizing": "trace",
            "tracegroupgap": 0,
            "title": {"text": ""},
        },
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        uirevision="kept",
        dragmode="zoom",
    )
    line = {
        "showgrid": True,
        "gridcolor": GRID[mode],
        "gridwidth": 1,
        "zeroline": False,
        "showline": True,
        "linecolor": AXIS[mode],
        "linewidth": 1,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": AXIS[mode],
        "tickfont": {"size": SMALL, "color": QUIET[mode]},
        "automargin": True,
    }
    figure.update_xaxes(**line, title_standoff=6, title_font={"size": SMALL, "color": QUIET[mode]})
    figure.update_yaxes(**line, title_standoff=8, title_font={"size": SMALL, "color": QUIET[mode]})
    return figure


def panel_title(figure: go.Figure, text: str, row: int, column: int, mode: Mode) -> None:
    """Write a panel's name above its left corner."""
    figure.add_annotation(
        text=text,
        row=row,
        col=column,
        x=0,
        xref="x domain",
        xanchor="left",
        y=1,
        yref="y domain",
        yanchor="bottom",
        yshift=2,
        showarrow=False,
        font={"size": FONT_SIZE, "color": TEXT[mode]},
    )


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round values between two positive bounds for a logarithmic axis, at most about `most` of them.

    Narrow ranges get evenly spaced values, wide ones 1, 2, 5 of each decade, wider ones decades alone.
    """
    if high / low < 4:
        rough = (high - low) / (most - 1)
        size = 10 ** math.floor(math.log10(rough))
        step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough * 0.999)
        first = math.ceil(low / step - 1e-9)
        return [round(step * index, 12) for index in range(first, math.floor(high / step + 1e-9) + 1)]
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors in ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        ticks = [
            factor * 10.0**power
            for power in range(first, last + 1)
            for factor in factors
            if low <= factor * 10.0**power <= high
        ]
        if len(ticks) <= most:
            break
    every = math.ceil(len(ticks) / most)
    return ticks[::every]


def tick_text(value: float) -> str:
    """A tick's value without needless digits."""
    return f"{value:g}" if 1e-3 <= value < 1e5 else f"{value:.0e}".replace("e+0", "e").replace("e-0", "e-")


def log_axis(low: float, high: float, suffix: str = "") -> dict[str, Any]:
    """A logarithmic axis over two positive bounds with readable ticks."""
    ticks = log_ticks(low, high)
    return {
        "type": "log",
        "range": [math.log10(low), math.log10(high)],
        "tickmode": "array",
        "tickvals": ticks,
        "ticktext": [f"{suffix}{tick_text(tick)}" for tick in ticks],
        "minorloglabels": "none",
    }


def small(values: Any) -> "np.ndarray[Any, np.dtype[np.float32]]":
    """Values as four-byte floats, None as a gap: half the message, seven figures."""
    return np.array([math.nan if value is None else value for value in values], dtype=np.float32)
