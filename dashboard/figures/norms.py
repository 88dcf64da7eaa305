"""How does the hidden norm go while training? One panel per layer, the cells side by side, seeds as a band."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from client import Divergence, HiddenNormComparison, HiddenNormGroup, SingleRun
from dashboard.figures.frame import dress, log_axis, panel_title, small
from dashboard.palette import QUIET, Mode, cell_colour, cell_symbol, cell_title, in_order, transparent
from dashboard.words import DOT, Statistic, number

ROW_HEIGHT, GAP = 190, 62
TOLERANCE = 1.1
"""The claim's measure: a norm within 10 % of its start is nearly constant."""
Panel = tuple[int, int]
"""Depth and layer."""


def norms_figure(
    comparison: HiddenNormComparison,
    statistic: Statistic,
    mode: Mode,
    *,
    columns: int,
    single_seeds: bool = False,
    divergences: Mapping[str, Divergence | None] | None = None,
) -> go.Figure:
    """The stability figure: per layer, the mean over seeds with its 95% interval against the training step.

    Args:
        comparison: Groups of one task; those of several depths give one row of panels per depth.
        statistic: What the groups hold.
        mode: Light or dark.
        columns: How many panels may stand side by side.
        single_seeds: Draw every seed that `comparison` holds; diverged seeds are drawn always.
        divergences: Where runs diverged, by run id.

    Returns:
        A figure whose panels share one logarithmic axis; values that are not finite are gaps with a mark on the floor.
    """
    panels = sorted({(group.depth, group.layer) for group in comparison.groups})
    places, rows, width = _places(panels, columns)
    plot = ROW_HEIGHT * rows + GAP * (rows - 1)
    figure = make_subplots(
        rows=rows,
        cols=width,
        horizontal_spacing=min(0.03, 0.3 / width),
        vertical_spacing=GAP / plot if rows > 1 else 0,
        specs=[
            [{} if (row, column) in places.values() else None for column in range(1, width + 1)]
            for row in range(1, rows + 1)
        ],
    )
    low, high = bounds(comparison.groups, statistic)
    last = max((group.steps[-1] for group in comparison.groups if group.steps), default=1)
    named: set[str] = set()
    several = len({depth for depth, _ in panels}) > 1
    for panel, (row, column) in places.items():
        groups = [group for group in comparison.groups if (group.depth, group.layer) == panel]
        traces = _reference(statistic, last, mode)
        for cell in in_order({group.cell for group in groups}):
            group = next(group for group in groups if group.cell == cell)
            traces += _traces(group, mode, low, high, single_seeds, divergences or {})
        for trace in traces:
            trace.showlegend = bool(trace.showlegend is not False and trace.legendgroup not in named)
            if trace.showlegend:
                named.add(trace.legendgroup)
            figure.add_trace(trace, row=row, col=column)
        title = f"depth {panel[0]} {DOT} layer {panel[1]}" if several else f"layer {panel[1]}"
        panel_title(figure, title, row, column, mode)
    top = 62 if columns > 1 else 36 + 21 * math.ceil(len(named) / 2)
    dress(figure, mode, height=plot + top + 56, unified=not single_seeds, top=top)
    edge = 0.012 * last
    figure.update_xaxes(
        range=[-edge, last + edge], unifiedhovertitle={"text": "<b>step %{x:,}</b>"}, nticks=5, tickformat=",~d"
    )
    figure.update_yaxes(**log_axis(low, high))
    for row, column in places.values():
        below = any(place[1] == column and place[0] > row for place in places.values())
        figure.update_xaxes(showticklabels=not below, title_text="" if below else "training step", row=row, col=column)
        first = column == 1
        figure.update_yaxes(showticklabels=first, title_text=statistic.axis if first else "", row=row, col=column)
    return figure


def bounds(groups: Sequence[HiddenNormGroup], statistic: Statistic) -> tuple[float, float]:
    """The positive range that holds every finite seed, and the intervals as far as they do not dwarf the seeds."""
    seeds = [v for g in groups for v in (*g.minimum, *g.maximum) if math.isfinite(v) and v > 0]
    if statistic.reference:
        seeds.append(1.0)
    if not seeds:
        return 0.5, 2.0
    low, high = min(seeds), max(seeds)
    slack = max(1.06, (high / low) ** 0.15)
    ends = [v for g in groups for v in (*g.low, *g.high) if v is not None and math.isfinite(v) and v > 0]
    low, high = max(min([low, *ends]), low / slack), min(max([high, *ends]), high * slack)
    pad = max(1.03, (high / low) ** 0.06)
    return low / pad, high * pad


def _places(panels: Sequence[Panel], columns: int) -> tuple[dict[Panel, tuple[int, int]], int, int]:
    """Row and column of each panel: a row per depth where that fits, else one after the other."""
    depths = sorted({depth for depth, _ in panels})
    widest = max((layer for _, layer in panels), default=0) + 1
    if len(depths) > 1 and widest <= columns:
        return {panel: (depths.index(panel[0]) + 1, panel[1] + 1) for panel in panels}, len(depths), widest
    width = max(1, min(columns, len(panels)))
    places = {panel: (index // width + 1, index % width + 1) for index, panel in enumerate(panels)}
    return places, max(1, math.ceil(len(panels) / width)), width


def _reference(statistic: Statistic, last: int, mode: Mode) -> list[go.Scatter]:
    """The line at 1 where 1 has a meaning, and for the relative norm the band that counts as nearly constant."""
    if not statistic.reference:
        return []
    line = go.Scatter(
        x=[0, last],
        y=[1, 1],
        mode="lines",
        name=statistic.reference,
        legendgroup="reference",
        legendrank=2000,
        line={"color": QUIET[mode], "width": 1.2, "dash": "dash"},
        hoverinfo="skip",
    )
    if statistic.name != "relative":
        return [line]
    band = go.Scatter(
        x=[0, last, last, 0],
        y=[1 / TOLERANCE, 1 / TOLERANCE, TOLERANCE, TOLERANCE],
        mode="lines",
        fill="toself",
        fillcolor=transparent(QUIET[mode], 0.14),
        line={"width": 0},
        name="within 10 %",
        legendgroup="tolerance",
        legendrank=2001,
        hoverinfo="skip",
    )
    return [band, line]


def _traces(
    group: HiddenNormGroup,
    mode: Mode,
    low: float,
    high: float,
    single_seeds: bool,
    divergences: Mapping[str, Divergence | None],
) -> list[go.Scatter]:
    colour = cell_colour(group.cell, mode)
    traces = [_band(group, colour, low, high)]
    for run in group.single:
        if single_seeds or run.status == "diverged":
            traces.append(_seed(run, group, colour))
        if run.status == "diverged":
            traces.append(_end(run, group, colour, divergences.get(run.run_id)))
    return [*traces, _mean(group, colour), _gaps(group, colour, low)]


def _mean(group: HiddenNormGroup, colour: str) -> go.Scatter:
    said = [
        f"n = {n}" + (f" {DOT} 95% {number(a)} to {number(b)}" if a is not None and b is not None else "")
        for n, a, b in zip(group.n, group.low, group.high, strict=True)
    ]
    title = cell_title(group.cell)
    return go.Scatter(
        x=np.array(group.steps, dtype=np.int32),
        y=small(group.mean),
        text=said,
        mode="lines+markers" if len(group.steps) > 1 else "markers",
        name=title,
        legendgroup=group.cell,
        connectgaps=False,
        line={"color": colour, "width": 2.2},
        marker={"symbol": cell_symbol(group.cell), "size": 6, "maxdisplayed": 10},
        hovertemplate=f"{title}: <b>%{{y:.4g}}</b> {DOT} %{{text}}<extra></extra>",
    )


def _band(group: HiddenNormGroup, colour: str, low: float, high: float) -> go.Scatter:
    """The interval as closed polygons, one per stretch of steps that have it; cut at the panel's edges."""
    x: list[float] = []
    y: list[float] = []
    for stretch in _stretches(group):
        x += [*(group.steps[i] for i in stretch), *(group.steps[i] for i in reversed(stretch)), math.nan]
        y += [min(high, float(group.high[i] or 0)) for i in stretch]
        y += [max(low, float(group.low[i] or 0)) for i in reversed(stretch)]
        y.append(math.nan)
    return go.Scatter(
        x=small(x),
        y=small(y),
        mode="lines",
        fill="toself",
        fillcolor=transparent(colour, 0.18),
        line={"width": 0},
        name=f"{cell_title(group.cell)}, 95% interval",
        legendgroup=group.cell,
        showlegend=False,
        hoverinfo="skip",
    )


def _stretches(group: HiddenNormGroup) -> list[list[int]]:
    stretches: list[list[int]] = [[]]
    for index, (low, high) in enumerate(zip(group.low, group.high, strict=True)):
        if low is not None and high is not None and math.isfinite(low) and math.isfinite(high):
            stretches[-1].append(index)
        elif stretches[-1]:
            stretches.append([])
    return [stretch for stretch in stretches if stretch]


def _seed(run: SingleRun, group: HiddenNormGroup, colour: str) -> go.Scatter:
    diverged = run.status == "diverged"
    return go.Scatter(
        x=np.array(run.steps, dtype=np.int32),
        y=small(run.values),
        mode="lines",
        name="one seed",
        legendgroup=f"{group.cell} seeds",
        showlegend=False,
        connectgaps=False,
        opacity=0.9 if diverged else 0.55,
        line={"color": colour, "width": 1.2, "dash": "dot" if diverged else "solid"},
        hovertemplate=f"{cell_title(group.cell)}, seed {run.seed}: %{{y:.4g}} at step %{{x:,}}<extra></extra>",
        hoverinfo="skip" if diverged else None,
    )


def _end(run: SingleRun, group: HiddenNormGroup, colour: str, divergence: Divergence | None) -> go.Scatter:
    """A cross where the seed's curve ends, with the step and place of the first value that was not finite."""
    finite = [
        (step, value) for step, value in zip(run.steps, run.values, strict=True) if math.isfinite(value) and value > 0
    ]
    step, value = finite[-1] if finite else (run.steps[-1] if run.steps else 0, math.nan)
    where = "" if divergence is None else _where(divergence)
    return go.Scatter(
        x=[step],
        y=small([value]),
        mode="markers",
        name="diverged",
        legendgroup="diverged",
        legendrank=1500,
        marker={"symbol": "x", "size": 9, "color": colour, "line": {"width": 0}},
        hovertemplate=f"{cell_title(group.cell)}, seed {run.seed}: <b>diverged</b>{where}<extra></extra>",
    )


def _where(divergence: Divergence) -> str:
    place = "outside the layers" if divergence.layer is None else f"in layer {divergence.layer}"
    return f" at step {divergence.step:,} ({divergence.kind}, {place})"


def _gaps(group: HiddenNormGroup, colour: str, floor: float) -> go.Scatter:
    """A mark on the floor at each step where seeds were left out because their value is not finite."""
    at = [index for index, count in enumerate(group.non_finite) if count]
    return go.Scatter(
        x=[group.steps[index] for index in at],
        y=small([floor * 1.0001] * len(at)),
        text=[f"{group.non_finite[index]} of {group.non_finite[index] + group.n[index]}" for index in at],
        mode="markers",
        name="not finite, left out",
        legendgroup="gaps",
        legendrank=1600,
        showlegend=bool(at),
        cliponaxis=False,
        marker={"symbol": "triangle-up-open", "size": 8, "color": colour, "line": {"width": 1.5}},
        hovertemplate=f"{cell_title(group.cell)}: %{{text}} seeds not finite, left out of the mean<extra></extra>",
    )
