"""How does a figure look on paper? The same traces, axes and texts at 180 mm, drawn as PDF, SVG or PNG.

It reads what the dashboard's own figures are made of: scatter and heat map traces, shapes that are lines, annotations,
legend; no more of plotly than that.
"""

import io
import math
import re
from typing import Any

import plotly.graph_objects as go

from dashboard.paper_marks import DASHES, SCALE, WIDTH_IN, draw, entries, plain

KINDS = {"pdf": "application/pdf", "svg": "image/svg+xml", "png": "image/png"}
LEFT, RIGHT, BAR = 0.6, 0.12, 0.7
"""Inches left of the panels, right of them, and for a colour bar."""
DOTS = 300
ROW, TITLE = 0.14, 0.17
"""Inches that a row of the legend takes, and the title of a panel."""
LETTER = 0.048
"""Inches that a letter takes, about."""
_SETTINGS: Any = {
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
    page = Figure(figsize=(WIDTH_IN, 1.0), facecolor="white")
    FigureCanvasAgg(page)
    planned, bottom = layout.margin.t * SCALE / 72, max(0.36, layout.margin.b * SCALE / 72)
    top = max(planned, ROW * _legend(page, entries(figure)) + TITLE)
    height = layout.height * SCALE / 72 + top - planned
    page.set_size_inches(WIDTH_IN, height)
    right = BAR if layout.coloraxis.colorscale else RIGHT
    left = _left(layout)
    inner = (WIDTH_IN - left - right, height - top - bottom)
    panels: dict[str, Any] = {}
    for name in _axes(layout):
        x, y = layout[f"xaxis{name}"], layout[f"yaxis{name}"]
        box = (
            (left + x.domain[0] * inner[0]) / WIDTH_IN,
            (bottom + y.domain[0] * inner[1]) / height,
            (x.domain[1] - x.domain[0]) * inner[0] / WIDTH_IN,
            (y.domain[1] - y.domain[0]) * inner[1] / height,
        )
        panels[name] = page.add_axes(box)
        _axis(panels[name], x, "x")
        _axis(panels[name], y, "y")
        panels[name].spines[["top", "right"]].set_visible(False)
    for trace in figure.data:
        draw(panels, layout, trace)
    for shape in layout.shapes:
        _rule(panels, shape)
    for note in layout.annotations:
        _note(panels, note)
    if layout.coloraxis.colorscale:
        _bar(page, layout.coloraxis, height - top, height)
    return page


def _left(layout: Any) -> float:
    """Room for the longest text left of the panels."""
    texts = [text for name in _axes(layout) for text in _texts(layout[f"yaxis{name}"])]
    return max(LEFT, LETTER * max(map(len, texts), default=0) + 0.24)


def _texts(axis: Any) -> list[str]:
    return [plain(text) for text in (axis.categoryarray if axis.type == "category" else axis.ticktext) or ()]


def _axes(layout: Any) -> list[str]:
    names = [name.removeprefix("xaxis") for name in layout if re.fullmatch(r"xaxis\d*", name)]
    return sorted(names, key=lambda name: int(name or 1))


def _axis(panel: Any, axis: Any, which: str) -> None:
    from matplotlib.ticker import (
        FixedLocator,
        FuncFormatter,
        MaxNLocator,
        MultipleLocator,
        NullFormatter,
        NullLocator,
    )

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
        own.set_major_formatter(FuncFormatter(lambda value, _: plain(labels[min(len(labels) - 1, round(value))])))
    elif axis.tickvals is not None:
        texts = dict(zip(axis.tickvals, axis.ticktext or map(str, axis.tickvals), strict=True))
        own.set_major_locator(FixedLocator(list(axis.tickvals)))
        own.set_major_formatter(FuncFormatter(lambda value, _: plain(str(texts.get(value, "")))))
    else:
        own.set_major_locator(
            MultipleLocator(axis.dtick) if axis.dtick else MaxNLocator(axis.nticks or 5, steps=[1, 2, 2.5, 5, 10])
        )
        if axis.tickformat == ",~d":
            own.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        elif str(axis.tickformat).endswith("%"):
            digits = str(axis.tickformat)[1:-1]
            own.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.{digits}f} %"))
    if axis.showticklabels is False or axis.visible is False:
        own.set_major_formatter(NullFormatter())
    if axis.showgrid is not False:
        own.grid(visible=True, color=axis.gridcolor, linewidth=0.4)
    panel.set_axisbelow(True)
    if axis.tickangle:
        panel.tick_params(axis=which, labelrotation=-axis.tickangle)
    colour = axis.tickfont.color or "black"
    panel.tick_params(axis=which, length=2 if axis.ticks == "outside" else 0, width=0.5, labelcolor=colour, pad=2)
    for spine in ("left", "bottom"):
        panel.spines[spine].set(color=axis.linecolor or "black", linewidth=0.5)
    if axis.title.text:
        getattr(panel, f"set_{which}label")(plain(axis.title.text), color=axis.title.font.color, labelpad=2)


def _rule(panels: dict[str, Any], shape: Any) -> None:
    upright = "domain" not in shape.xref
    panel = panels[(shape.xref if upright else shape.yref).split()[0][1:]]
    look: dict[str, Any] = {"color": shape.line.color, "linewidth": (shape.line.width or 1) * SCALE * 1.2}
    if shape.line.dash and shape.line.dash != "solid":
        look["dashes"] = DASHES.get(shape.line.dash, (2, 3))
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
        plain(note.text),
        transform=transform,
        ha={"left": "left", "right": "right"}.get(note.xanchor, "center"),
        va={"bottom": "bottom", "top": "top"}.get(note.yanchor, "center"),
        color=note.font.color or "black",
        fontsize=(note.font.size or 13) * SCALE,
    )


def _legend(page: Any, handles: list[Any]) -> int:
    """Put the legend on top in as many columns as fit; returns its number of rows."""
    for columns in range(len(handles), 0, -1):
        legend = page.legend(
            handles=handles, loc="upper left", ncols=columns, frameon=False, borderaxespad=0.2, columnspacing=1.4
        )
        if columns == 1 or legend.get_window_extent().width <= page.bbox.width:
            return math.ceil(len(handles) / columns)
        legend.remove()
    return 0


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
        bar.set_ticks(list(axis.colorbar.tickvals), labels=[plain(text) for text in axis.colorbar.ticktext])
    bar.outline.set_linewidth(0)
    bar.ax.tick_params(length=2, width=0.5, pad=1, labelsize=5.5)
    if axis.colorbar.title.text:
        bar.set_label(plain(axis.colorbar.title.text), labelpad=2, fontsize=5.5)
