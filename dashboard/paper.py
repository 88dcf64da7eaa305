"""How does a figure look on paper? The same traces, axes and texts at 180 mm, drawn as PDF, SVG or PNG.

It reads what the dashboard's own figures are made of: scatter and heat map traces, shapes that are lines, annotations,
legend; no more of plotly than that.
"""

import io
import itertools
import math
import re
from typing import Any

import numpy as np
import plotly.graph_objects as go

KINDS = {"pdf": "application/pdf", "svg": "image/svg+xml", "png": "image/png"}
WIDTH_IN = 180 / 25.4
SCALE = WIDTH_IN * 72 / 1080
"""Points on paper per pixel of a page of usual width."""
LEFT, RIGHT, BAR = 0.6, 0.12, 0.55
"""Inches left of the panels, right of them, and for a colour bar."""
DOTS = 300
_MARKERS = {
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
_DASHES = {"dash": (5, 3), "dot": (1, 1.6), "dashdot": (5, 2, 1, 2), "longdash": (9, 3), "longdashdot": (9, 3, 1, 3)}
_SETTINGS = {
    "font.size": 6.5,
    "font.family": "sans-serif",
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "rotbench",
    "axes.unicode_minus": False,
}


def printed(figure: go.Figure, kind: str) -> bytes:
    """The figure as a file.

    Args:
        figure: One of the dashboard's, in light colours.
        kind: One of KINDS.
    """
    import matplotlib

    with matplotlib.rc_context(_SETTINGS):
        drawn = _drawn(figure)
        file = io.BytesIO()
        metadata: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
        drawn.savefig(file, format=kind, dpi=DOTS, metadata=metadata[kind])
    return file.getvalue()


def _drawn(figure: go.Figure) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    layout = figure.layout
    height = layout.height * SCALE / 72
    page = Figure(figsize=(WIDTH_IN, height), facecolor="white")
    FigureCanvasAgg(page)
    top, bottom = layout.margin.t * SCALE / 72, 0.36
    right = BAR if layout.coloraxis.colorscale else RIGHT
    inner = (WIDTH_IN - LEFT - right, height - top - bottom)
    panels: dict[str, Any] = {}
    for name in _axes(layout):
        x, y = layout[f"xaxis{name}"], layout[f"yaxis{name}"]
        box = (
            (LEFT + x.domain[0] * inner[0]) / WIDTH_IN,
            (bottom + y.domain[0] * inner[1]) / height,
            (x.domain[1] - x.domain[0]) * inner[0] / WIDTH_IN,
            (y.domain[1] - y.domain[0]) * inner[1] / height,
        )
        panels[name] = page.add_axes(box)
        _axis(panels[name], x, "x")
        _axis(panels[name], y, "y")
        panels[name].spines[["top", "right"]].set_visible(False)
    for trace in figure.data:
        _trace(panels, layout, trace)
    for shape in layout.shapes:
        _rule(panels, shape)
    for note in layout.annotations:
        _note(panels, note)
    _legend(page, figure, layout)
    if layout.coloraxis.colorscale:
        _bar(page, layout.coloraxis, height - top, height)
    return page


def _axes(layout: Any) -> list[str]:
    names = [name.removeprefix("xaxis") for name in layout if re.fullmatch(r"xaxis\d*", name)]
    return sorted(names, key=lambda name: int(name or 1))


def _axis(panel: Any, axis: Any, which: str) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter, NullLocator

    own = getattr(panel, f"{which}axis")
    if axis.type == "log":
        getattr(panel, f"set_{which}scale")("log")
        own.set_minor_locator(NullLocator())
    if axis.range:
        ends = [10**end if axis.type == "log" else end for end in axis.range]
        getattr(panel, f"set_{which}lim")(*ends)
    labels = axis.categoryarray if axis.type == "category" else None
    if labels is not None:
        own.set_major_locator(FixedLocator(range(len(labels))))
        own.set_major_formatter(FuncFormatter(lambda value, _: _plain(labels[min(len(labels) - 1, round(value))])))
    elif axis.tickvals is not None:
        texts = dict(zip(axis.tickvals, axis.ticktext or map(str, axis.tickvals), strict=True))
        own.set_major_locator(FixedLocator(list(axis.tickvals)))
        own.set_major_formatter(FuncFormatter(lambda value, _: _plain(str(texts.get(value, "")))))
    else:
        own.set_major_locator(MaxNLocator(axis.nticks or 5))
        if axis.tickformat == ",~d":
            own.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        elif str(axis.tickformat).endswith("%"):
            own.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))
    if axis.showticklabels is False or axis.visible is False:
        own.set_major_formatter(NullFormatter())
    if axis.showgrid is not False:
        own.grid(visible=True, color=axis.gridcolor, linewidth=0.4)
    panel.set_axisbelow(True)
    colour = axis.tickfont.color or "black"
    panel.tick_params(axis=which, length=2 if axis.ticks == "outside" else 0, width=0.5, labelcolor=colour, pad=2)
    for spine in ("left", "bottom"):
        panel.spines[spine].set(color=axis.linecolor or "black", linewidth=0.5)
    if axis.title.text:
        getattr(panel, f"set_{which}label")(_plain(axis.title.text), color=axis.title.font.color, labelpad=2)


def _trace(panels: dict[str, Any], layout: Any, trace: Any) -> None:
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
            panel.fill(part_x, part_y, **_colour(trace.fillcolor), linewidth=0)
        return
    look: dict[str, Any] = {"linestyle": "none", **transform}
    opacity = 1.0 if trace.opacity is None else trace.opacity
    if "lines" in (trace.mode or "lines"):
        line = trace.line
        look["drawstyle"] = "steps-post" if line.shape == "hv" else "default"
        look |= {"linestyle": "-", "color": line.color, "linewidth": (line.width or 1.5) * SCALE * 1.2}
        if line.dash and line.dash != "solid":
            look["dashes"] = _DASHES.get(line.dash, (2, 3))
    if "markers" in (trace.mode or ""):
        symbol = trace.marker.symbol or "circle"
        shown = trace.marker.maxdisplayed or len(x)
        filled = "none" if symbol.endswith("open") else trace.marker.color or trace.line.color
        look |= {
            "marker": _MARKERS.get(symbol, "o"),
            "markersize": (trace.marker.size or 6) * SCALE * 1.1,
            "markerfacecolor": filled,
            "markeredgecolor": trace.marker.color or trace.line.color,
            "markeredgewidth": 0.5,
            "markevery": max(1, math.ceil(len(x) / shown)),
        }
    panel.plot(x, y, alpha=opacity, **look)
    if "text" in (trace.mode or ""):
        for at, text in enumerate(trace.text if trace.text is not None else ()):
            panel.annotate(_plain(text), (x[at], y[at]), (3, 0), textcoords="offset points", va="center", fontsize=5.5)


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
    colours = LinearSegmentedColormap.from_list("scale", [(float(at), colour) for at, colour in axis.colorscale])
    colours = colours.with_extremes(bad=layout.plot_bgcolor if str(layout.plot_bgcolor).startswith("#") else "white")
    z = np.ma.masked_invalid(np.array(trace.z, dtype=float))
    x, y = (_edges(values) for values in (trace.x, trace.y))
    panel.pcolormesh(x, y, z, cmap=colours, norm=Normalize(least, most), rasterized=True)
    if trace.texttemplate and trace.text is not None:
        for row, line in enumerate(trace.text):
            for column, text in enumerate(line):
                place = ((x[column] + x[column + 1]) / 2, (y[row] + y[row + 1]) / 2)
                panel.annotate(_plain(text or ""), place, ha="center", va="center", fontsize=5.5)


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


def _colour(text: str) -> dict[str, Any]:
    found = re.fullmatch(r"rgba\((\d+),(\d+),(\d+),([\d.]+)\)", text)
    if not found:
        return {"color": text}
    red, green, blue, opacity = found.groups()
    return {"color": (int(red) / 255, int(green) / 255, int(blue) / 255), "alpha": float(opacity)}


def _rule(panels: dict[str, Any], shape: Any) -> None:
    upright = "domain" not in shape.xref
    panel = panels[(shape.xref if upright else shape.yref).split()[0][1:]]
    look: dict[str, Any] = {"color": shape.line.color, "linewidth": (shape.line.width or 1) * SCALE * 1.2}
    if shape.line.dash and shape.line.dash != "solid":
        look["dashes"] = _DASHES.get(shape.line.dash, (2, 3))
    if upright:
        panel.axvline(shape.x0, **look)
    else:
        panel.axhline(shape.y0, **look)


def _note(panels: dict[str, Any], note: Any) -> None:
    xref, yref = str(note.xref), str(note.yref)
    panel = panels.get(xref.split()[0][1:])
    if panel is None:
        return
    inside = "domain" in xref
    transform = panel.transAxes if inside else panel.get_xaxis_transform() if "domain" in yref else panel.transData
    panel.text(
        note.x,
        note.y,
        _plain(note.text),
        transform=transform,
        ha={"left": "left", "right": "right"}.get(note.xanchor, "center"),
        va={"bottom": "bottom", "top": "top"}.get(note.yanchor, "center"),
        color=note.font.color or "black",
        fontsize=(note.font.size or 13) * SCALE,
    )


def _legend(page: Any, figure: go.Figure, layout: Any) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if layout.showlegend is False:
        return
    named = [
        trace
        for trace in figure.data
        if trace.name and trace.showlegend is not False and trace.type in ("scatter", "bar")
    ]
    handles = []
    for trace in sorted(named, key=lambda trace: trace.legendrank or 1000):
        if trace.type == "bar":
            handles.append(Patch(label=_plain(trace.name), color=trace.marker.color))
            continue
        if trace.fill == "toself":
            handles.append(Patch(label=_plain(trace.name), **_colour(trace.fillcolor)))
            continue
        lines = "lines" in (trace.mode or "lines")
        marker = _MARKERS.get(trace.marker.symbol or "circle", "o") if "markers" in (trace.mode or "") else ""
        colour = trace.line.color if lines else trace.marker.color
        style: Any = (0, _DASHES.get(trace.line.dash, (2, 3))) if trace.line.dash not in (None, "solid") else "-"
        handles.append(
            Line2D(
                [],
                [],
                color=colour,
                linewidth=1,
                linestyle=style if lines else "none",
                marker=marker,
                markersize=3,
                label=_plain(trace.name),
            )
        )
    if handles:
        columns = min(5, len(handles))
        page.legend(
            handles=handles, loc="upper left", ncols=columns, frameon=False, borderaxespad=0.2, columnspacing=1.4
        )


def _bar(page: Any, axis: Any, top: float, height: float) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    colours = LinearSegmentedColormap.from_list("scale", [(float(at), colour) for at, colour in axis.colorscale])
    length = min(0.8, top - 0.2)
    place = page.add_axes(
        ((WIDTH_IN - BAR + 0.08) / WIDTH_IN, (top - length) / height, 0.08 / WIDTH_IN, length / height)
    )
    bar = page.colorbar(ScalarMappable(Normalize(axis.cmin, axis.cmax), colours), cax=place)
    if axis.colorbar.tickvals is not None:
        bar.set_ticks(list(axis.colorbar.tickvals), labels=[_plain(text) for text in axis.colorbar.ticktext])
    bar.outline.set_linewidth(0)
    bar.ax.tick_params(length=2, width=0.5, pad=1, labelsize=5.5)
    if axis.colorbar.title.text:
        bar.set_label(_plain(axis.colorbar.title.text), labelpad=2, fontsize=5.5)


def _plain(text: str) -> str:
    """A text without the marks that plotly reads, and without those that matplotlib would read."""
    return re.sub(r"<[^>]*>", "", str(text)).replace("$", r"\$")
