"""How are lines, markers, bands, bars and maps drawn on paper? plotly's traces on matplotlib's panels."""

import itertools
import math
import re
from typing import Any

import numpy as np
import plotly.graph_objects as go

WIDTH_IN = 180 / 25.4
SCALE = WIDTH_IN * 72 / 1080
"""Points on paper per pixel of a page of usual width."""
MARKERS = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "triangle-up": "^",
    "triangle-up-open": "^",
    "triangle-down": "v",
    "triangle-right": ">",
    "hexagon": "h",
    "star": "*",
    "cross": "P",
    "x": "X",
}
DASHES = {"dash": (5, 3), "dot": (1, 1.6), "dashdot": (5, 2, 1, 2), "longdash": (9, 3), "longdashdot": (9, 3, 1, 3)}


def draw(panels: dict[str, Any], layout: Any, trace: Any) -> None:
    panel = panels[(trace.xaxis or "x")[1:]]
    if trace.type == "heatmap":
        _map(panel, layout, trace)
        return
    if trace.type == "bar":
        _bars(panel, trace)
        return
    x, y = _numbers(trace.x, layout[f"xaxis{(trace.xaxis or 'x')[1:]}"]), trace.y
    floor = layout[f"yaxis{(trace.yaxis or 'y')[1:]}"].overlaying is not None
    y = _numbers(y, layout[f"yaxis{(trace.xaxis or 'x')[1:]}"])
    transform = {"transform": panel.get_xaxis_transform(), "clip_on": False} if floor else {}
    if trace.fill == "toself":
        for part_x, part_y in _parts(x, y):
            panel.fill(part_x, part_y, **colour_of(trace.fillcolor), linewidth=0)
        return
    look: dict[str, Any] = {"linestyle": "none", **transform}
    opacity = 1.0 if trace.opacity is None else trace.opacity
    if "lines" in (trace.mode or "lines"):
        line = trace.line
        look["drawstyle"] = "steps-post" if line.shape == "hv" else "default"
        look |= {"linestyle": "-", "color": line.color, "linewidth": (line.width or 1.5) * SCALE * 1.2}
        if line.dash and line.dash != "solid":
            look["dashes"] = DASHES.get(line.dash, (2, 3))
    if "markers" in (trace.mode or ""):
        symbol = trace.marker.symbol or "circle"
        shown = trace.marker.maxdisplayed or len(x)
        filled = "none" if symbol.endswith("open") else trace.marker.color or trace.line.color
        look |= {
            "marker": MARKERS.get(symbol, "o"),
            "markersize": (trace.marker.size or 6) * SCALE * 1.1,
            "markerfacecolor": filled,
            "markeredgecolor": trace.marker.color or trace.line.color,
            "markeredgewidth": 0.5,
            "markevery": max(1, math.ceil(len(x) / shown)),
        }
    panel.plot(x, y, alpha=opacity, **look)
    if "text" in (trace.mode or ""):
        for at, text in enumerate(trace.text if trace.text is not None else ()):
            panel.annotate(plain(text), (x[at], y[at]), (3, 0), textcoords="offset points", va="center", fontsize=5.5)


def _bars(panel: Any, trace: Any) -> None:
    """Bars on top of those that stand there already."""
    below = dict.fromkeys(trace.x, 0.0)
    for bar in panel.patches:
        place = round(bar.get_x() + bar.get_width() / 2)
        below[place] = max(below.get(place, 0.0), bar.get_y() + bar.get_height())
    bottom = [below[place] for place in trace.x]
    panel.bar(trace.x, trace.y, width=0.85, bottom=bottom, color=trace.marker.color)


def _map(panel: Any, layout: Any, trace: Any) -> None:
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    axis = layout.coloraxis if trace.coloraxis else trace
    least, most = (layout.coloraxis.cmin, layout.coloraxis.cmax) if trace.coloraxis else (trace.zmin, trace.zmax)
    colours: Any = LinearSegmentedColormap.from_list("scale", [(float(at), colour) for at, colour in axis.colorscale])
    colours = colours.with_extremes(bad=layout.plot_bgcolor if str(layout.plot_bgcolor).startswith("#") else "white")
    z = np.ma.masked_invalid(np.array(trace.z, dtype=float))
    x, y = (_edges(values) for values in (trace.x, trace.y))
    panel.pcolormesh(x, y, z, cmap=colours, norm=Normalize(least, most), rasterized=True)
    if trace.texttemplate and trace.text is not None:
        for row, line in enumerate(trace.text):
            for column, text in enumerate(line):
                place = ((x[column] + x[column + 1]) / 2, (y[row] + y[row + 1]) / 2)
                panel.annotate(plain(text or ""), place, ha="center", va="center", fontsize=5.5)


def _edges(values: Any) -> Any:
    places = np.arange(len(values), dtype=float) if isinstance(values[0], str) else np.asarray(values, dtype=float)
    if len(places) == 1:
        return np.array([places[0] - 0.5, places[0] + 0.5])
    middle = (places[1:] + places[:-1]) / 2
    return np.concatenate([[2 * places[0] - middle[0]], middle, [2 * places[-1] - middle[-1]]])


def _numbers(values: Any, axis: Any) -> Any:
    if axis.type == "category":
        known = {label: at for at, label in enumerate(axis.categoryarray)}
        return np.array([math.nan if value is None else known[value] for value in values], dtype=float)
    return np.array([math.nan if value is None else value for value in values], dtype=float)


def _parts(x: Any, y: Any) -> list[tuple[Any, Any]]:
    gaps = [-1, *np.flatnonzero(np.isnan(x) | np.isnan(y)), len(x)]
    return [(x[begin + 1 : end], y[begin + 1 : end]) for begin, end in itertools.pairwise(gaps) if end > begin + 1]


def colour_of(text: str) -> dict[str, Any]:
    found = re.fullmatch(r"rgba\((\d+),(\d+),(\d+),([\d.]+)\)", text)
    if not found:
        return {"color": text}
    red, green, blue, opacity = found.groups()
    return {"color": (int(red) / 255, int(green) / 255, int(blue) / 255), "alpha": float(opacity)}


def entries(figure: go.Figure) -> list[Any]:
    """The legend's entries, in the order of their ranks."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if figure.layout.showlegend is False:
        return []
    shown = [trace for trace in figure.data if trace.name and trace.showlegend is not False]
    named = [trace for trace in shown if trace.type in ("scatter", "bar")]
    handles: list[Any] = []
    for trace in sorted(named, key=lambda trace: trace.legendrank or 1000):
        label = plain(trace.name)
        if trace.type == "bar":
            handles.append(Patch(label=label, color=trace.marker.color))
            continue
        if trace.fill == "toself":
            handles.append(Patch(label=label, **colour_of(trace.fillcolor)))
            continue
        lines = "lines" in (trace.mode or "lines")
        style: Any = (0, DASHES.get(trace.line.dash, (2, 3))) if trace.line.dash not in (None, "solid") else "-"
        look = {
            "color": trace.line.color if lines else trace.marker.color,
            "linestyle": style if lines else "none",
            "marker": MARKERS.get(trace.marker.symbol or "circle", "o") if "markers" in (trace.mode or "") else "",
        }
        handles.append(Line2D([], [], linewidth=1, markersize=3, label=label, **look))
    return handles


def plain(text: str) -> str:
    """A text without the marks that plotly reads, and without those that matplotlib would read."""
    return re.sub(r"<[^>]*>", "", str(text)).replace("$", r"\$")
