"""How did the hidden norm of one run go? Every layer as a line, paler towards the input."""

import math

import plotly.graph_objects as go

from client import Divergence, HiddenNormSeries, HiddenNormTrace
from dashboard.figures.axes import log_axis, small, step_axis, whole
from dashboard.figures.canvas import Canvas, Trace
from dashboard.palette import QUIET, Mode, cell_colour, cell_symbol, layer_shade
from dashboard.words import Statistic, number


def layers_figure(
    trace: HiddenNormTrace,
    statistic: Statistic,
    cell: str,
    mode: Mode,
    *,
    columns: int,
    divergence: Divergence | None = None,
) -> go.Figure:
    """The mean norm of every layer on a logarithmic axis; its range over batch and time stands in the hover text."""
    chosen = [series for series in trace.series if series.statistic == statistic.name and series.steps]
    last = max((series.steps[-1] for series in chosen), default=1)
    means = [value for series in chosen for row in series.mean for value in row]
    values = [value for value in means if math.isfinite(value) and value > 0] + [1.0] * bool(statistic.reference)
    low, high = (min(values), max(values)) if values else (0.5, 2.0)
    pad = max(1.03, (high / low) ** 0.08)
    canvas = Canvas(mode, [240], page=columns)
    panel = canvas.panel(
        0,
        0,
        x=step_axis(0, last * 1.01, ticks=6) | {"title_text": "training step"},
        y=log_axis(low / pad, high * pad) | {"title_text": f"{statistic.axis}, log scale"},
    )
    if statistic.reference:
        line = {"color": QUIET[mode], "width": 1.2, "dash": "dash"}
        reference = {"x": [0, last], "y": [1, 1], "mode": "lines", "line": line, "hoverinfo": "skip"}
        canvas.add(panel, reference | {"name": statistic.reference})
    for series in chosen:
        for layer in range(trace.layers):
            shade = layer_shade(layer, trace.layers, cell_colour(cell, mode), mode)
            canvas.add(panel, _line(series, layer, cell, shade))
            gaps = [(step, row[layer]) for step, row in zip(series.steps, series.non_finite, strict=True) if row[layer]]
            said = [f"layer {layer}: {count:,} values not finite" for _, count in gaps]
            canvas.mark_gaps(panel, [step for step, _ in gaps], said, f"layer {layer} not finite", shade)
    canvas.mark_divergence(panel, divergence)
    return canvas.figure(showlegend=True)


def _line(series: HiddenNormSeries, layer: int, cell: str, shade: str) -> Trace:
    ranges = [
        f"{number(low[layer])} to {number(high[layer])} over batch and time"
        for low, high in zip(series.minimum, series.maximum, strict=True)
    ]
    return {
        "x": whole(series.steps),
        "y": small(row[layer] for row in series.mean),
        "text": ranges,
        "mode": "lines+markers",
        "name": f"layer {layer}",
        "connectgaps": False,
        "line": {"color": shade, "width": 2},
        "marker": {"symbol": cell_symbol(cell), "size": 6, "maxdisplayed": 12},
        "hovertemplate": f"layer {layer}: <b>%{{y:.4g}}</b> (%{{text}})<extra></extra>",
    }
