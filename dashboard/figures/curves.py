"""How did one run go? Its curves of loss, accuracy, gradient and learning rate, and its norms layer by layer."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from client import Divergence, HiddenNormTrace, MetricSeries
from dashboard.figures.frame import dress, log_axis, small
from dashboard.palette import QUIET, STATUS_COLOURS, TEXT, Mode, cell_colour, cell_symbol, layer_shade
from dashboard.words import Statistic, number


@dataclass(frozen=True)
class Curve:
    """A chart of one or more series of a run; `log` where it spans decades, `share` where it lies in [0, 1]."""

    title: str
    axis: str
    keys: tuple[tuple[str, str], ...]
    help: str
    log: bool = False
    share: bool = False


CURVES = (
    Curve(
        "Loss",
        "cross entropy, nat",
        (("train_loss", "training"), ("validation_loss", "validation"), ("test_loss", "test")),
        "Training: the batch of that step, before its update. Validation and test: the whole split, evaluation mode.",
    ),
    Curve(
        "Accuracy",
        "share right",
        (("train_accuracy", "training"), ("validation_accuracy", "validation"), ("test_accuracy", "test")),
        "Share of sequences classified rightly.",
        share=True,
    ),
    Curve(
        "Gradient norm",
        "Euclidean norm, log scale",
        (("gradient_norm", "all parameters"),),
        "Length of the gradient over all parameters, before the update.",
        log=True,
    ),
    Curve(
        "Learning rate",
        "per update",
        (("learning_rate", "network"), ("recurrence_learning_rate", "recurrence")),
        "Warm-up, then cosine. The recurrence (eigenvalues, normaliser, B) has a rate of its own.",
    ),
)
_DASHES = ("solid", "dash", "dot")


def metric_figure(
    curve: Curve, series: Mapping[str, MetricSeries], cell: str, mode: Mode, *, divergence: Divergence | None = None
) -> go.Figure:
    """One chart of a run's metrics; values that are not finite are gaps with a mark at the edge and their count."""
    figure = go.Figure()
    colour = cell_colour(cell, mode)
    shades = (colour, TEXT[mode], QUIET[mode])
    present = [(key, name) for key, name in curve.keys if key in series and series[key].steps]
    for index, (key, name) in enumerate(present):
        one = series[key]
        lone = len(one.steps) == 1
        figure.add_trace(
            go.Scatter(
                x=np.array(one.steps, dtype=np.int32),
                y=small(one.values),
                mode="markers" if lone else "lines+markers" if len(one.steps) <= 60 and index else "lines",
                name=name,
                connectgaps=False,
                line={
                    "color": shades[index % 3],
                    "width": 1.8 if index else 1.6,
                    "dash": _DASHES[index % 3] if not lone else "solid",
                },
                marker={
                    "size": 9 if lone else 5,
                    "symbol": "star" if lone else cell_symbol(cell),
                    "color": shades[index % 3],
                },
                hovertemplate=f"{name}: <b>%{{y:{'.1%' if curve.share else '.4g'}}}</b><extra></extra>",
            )
        )
    finite = [v for key, _ in present for v in series[key].values if math.isfinite(v) and (v > 0 or not curve.log)]
    if curve.log and finite:
        figure.update_yaxes(**log_axis(min(finite) / 1.15, max(finite) * 1.15))
    elif curve.share:
        figure.update_yaxes(range=[0, min(1.0, max([0.2, *finite]) * 1.12)], tickformat=".0%")
    dress(figure, mode, height=270, top=40)
    for index, (key, name) in enumerate(present):
        _mark_gaps(figure, series[key], name, shades[index % 3])
    last = max((series[key].steps[-1] for key, _ in present), default=1)
    _finish(figure, last, curve.axis)
    _mark_divergence(figure, divergence, mode)
    return figure


def layers_figure(
    trace: HiddenNormTrace,
    statistic: Statistic,
    cell: str,
    mode: Mode,
    *,
    divergence: Divergence | None = None,
) -> go.Figure:
    """The hidden norm of every layer of one run: deeper layers darker, the range over batch and time as hover."""
    figure = go.Figure()
    chosen = next((series for series in trace.series if series.statistic == statistic.name), None)
    steps: Sequence[int] = chosen.steps if chosen else ()
    last = steps[-1] if steps else 1
    values: list[float] = [1.0] if statistic.reference else []
    if statistic.reference:
        figure.add_trace(
            go.Scatter(
                x=[0, last],
                y=[1, 1],
                mode="lines",
                name=statistic.reference,
                line={"color": QUIET[mode], "width": 1.2, "dash": "dash"},
                hoverinfo="skip",
            )
        )
    for layer in range(trace.layers if chosen else 0):
        assert chosen is not None
        mean = [row[layer] for row in chosen.mean]
        values += [value for value in mean if math.isfinite(value) and value > 0]
        ranges = [
            f"{number(low[layer])} to {number(high[layer])} over batch and time"
            for low, high in zip(chosen.minimum, chosen.maximum, strict=True)
        ]
        shade = layer_shade(layer, trace.layers, cell_colour(cell, mode), mode)
        figure.add_trace(
            go.Scatter(
                x=np.array(steps, dtype=np.int32),
                y=small(mean),
                text=ranges,
                mode="lines+markers",
                name=f"layer {layer}",
                connectgaps=False,
                line={"color": shade, "width": 2},
                marker={"symbol": cell_symbol(cell), "size": 6, "maxdisplayed": 12},
                hovertemplate=f"layer {layer}: <b>%{{y:.4g}}</b> (%{{text}})<extra></extra>",
            )
        )
    low, high = (min(values), max(values)) if values else (0.5, 2.0)
    pad = max(1.03, (high / low) ** 0.08)
    figure.update_yaxes(**log_axis(low / pad, high * pad))
    dress(figure, mode, height=320, top=40)
    for layer in range(trace.layers if chosen else 0):
        assert chosen is not None
        counts = [row[layer] for row in chosen.non_finite]
        _mark_norm_gaps(
            figure, layer, steps, counts, low / pad, layer_shade(layer, trace.layers, cell_colour(cell, mode), mode)
        )
    _finish(figure, last, f"{statistic.axis}, log scale")
    _mark_divergence(figure, divergence, mode)
    return figure


def _finish(figure: go.Figure, last: int, axis: str) -> None:
    figure.update_xaxes(
        range=[0, max(1, last) * 1.01],
        title_text="training step",
        nticks=6,
        tickformat=",~d",
        unifiedhovertitle={"text": "<b>step %{x:,}</b>"},
    )
    figure.update_yaxes(title_text=axis)


def _mark_gaps(figure: go.Figure, series: MetricSeries, name: str, colour: str) -> None:
    at = [(step, value) for step, value in zip(series.steps, series.values, strict=True) if not math.isfinite(value)]
    if at:
        figure.add_trace(
            go.Scatter(
                x=[step for step, _ in at],
                y=[0.02] * len(at),
                yaxis="y2",
                text=[number(value) for _, value in at],
                mode="markers",
                name=f"{len(at)} not finite",
                marker={"symbol": "triangle-up-open", "size": 9, "color": colour, "line": {"width": 1.5}},
                hovertemplate=f"{name}: <b>%{{text}}</b><extra></extra>",
            )
        )
        figure.update_layout(yaxis2={"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True})


def _mark_norm_gaps(
    figure: go.Figure, layer: int, steps: Sequence[int], counts: Sequence[int], floor: float, colour: str
) -> None:
    at = [(step, count) for step, count in zip(steps, counts, strict=True) if count]
    if at:
        figure.add_trace(
            go.Scatter(
                x=[step for step, _ in at],
                y=[floor * 1.0001] * len(at),
                text=[f"{count:,}" for _, count in at],
                mode="markers",
                name=f"layer {layer} not finite",
                showlegend=False,
                cliponaxis=False,
                marker={"symbol": "triangle-up-open", "size": 9, "color": colour, "line": {"width": 1.5}},
                hovertemplate=f"layer {layer}: %{{text}} values not finite<extra></extra>",
            )
        )


def _mark_divergence(figure: go.Figure, divergence: Divergence | None, mode: Mode) -> None:
    if divergence is not None:
        colour = STATUS_COLOURS[mode]["yellow"]
        figure.add_vline(x=divergence.step, line={"color": colour, "width": 1.5, "dash": "dot"})
        figure.add_annotation(
            text=f"diverged at {divergence.step:,}",
            x=divergence.step,
            y=1,
            yref="y domain",
            xanchor="right",
            yanchor="top",
            showarrow=False,
            font={"size": 12, "color": colour},
        )
