"""How does the hidden norm go while training? One panel per layer, the cells side by side, seeds as a band."""

import math
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from client import Divergence, HiddenNormComparison, HiddenNormGroup, SingleRun
from dashboard.figures.axes import log_axis, small, step_axis, whole
from dashboard.figures.bands import band
from dashboard.figures.canvas import Canvas, Trace
from dashboard.palette import QUIET, Mode, cell_colour, cell_symbol, cell_title, depth_dash, in_order, transparent
from dashboard.words import DOT, Statistic, number

ROW_HEIGHT = 190
TOLERANCE = 1.1
"""The claim's measure: a norm within 10 % of its start is nearly constant."""
SHORTEST = 10
"""Steps along x while only the values before training are there."""
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
    """The stability figure: per layer, the geometric mean over seeds with its 95% interval against the training step.

    Args:
        comparison: Groups of one task, on the log scale; those of several depths give one row of panels per depth.
        statistic: What the groups hold.
        mode: Light or dark.
        columns: How many panels may stand side by side.
        single_seeds: Draw every seed that `comparison` holds; diverged seeds are drawn always.
        divergences: Where runs diverged, by run id.

    Returns:
        A figure whose panels share one logarithmic axis; values that are not finite are gaps with a mark on the floor.
    """
    by_panel: dict[Panel, list[HiddenNormGroup]] = {}
    for group in sorted(comparison.groups, key=lambda g: (g.depth, g.layer)):
        by_panel.setdefault((group.depth, group.layer), []).append(group)
    place_of, rows, width = places(list(by_panel), columns)
    low, high = bounds(comparison.groups, statistic)
    last = max((group.steps[-1] for group in comparison.groups if group.steps), default=0) or SHORTEST
    depths = sorted({depth for depth, _ in by_panel})
    drawn = {
        panel: _reference(statistic, last, mode)
        + [
            trace
            for cell in in_order({group.cell for group in groups})
            for group in groups
            if group.cell == cell
            for trace in _traces(
                group, mode, depth_dash(panel[0], depths), (low, high), single_seeds, divergences or {}
            )
        ]
        for panel, groups in by_panel.items()
    }
    canvas = Canvas(mode, [ROW_HEIGHT] * rows, width, page=columns, bottom=56, unified=not single_seeds)
    edge = 0.012 * last
    named: set[str] = set()
    for panel, traces in drawn.items():
        row, column = place_of[panel]
        at = canvas.panel(
            row,
            column,
            title=f"depth {panel[0]} {DOT} layer {panel[1]}" if len(depths) > 1 else f"layer {panel[1]}",
            x=step_axis(-edge, last + edge) | {"title_text": "training step"},
            y=log_axis(low, high) | {"showticklabels": column == 0, "title_text": "" if column else statistic.axis},
        )
        for trace in traces:
            shown = trace.get("showlegend", True) and trace["legendgroup"] not in named
            named |= {trace["legendgroup"]} if shown else set()
            canvas.add(at, trace | {"showlegend": shown})
        for group in by_panel[panel]:
            _mark(canvas, at, group, named)
    return canvas.figure()


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


def places(panels: Sequence[Panel], columns: int) -> tuple[dict[Panel, tuple[int, int]], int, int]:
    """Row and column of each panel: a row per depth where that fits, else one after the other."""
    depths = sorted({depth for depth, _ in panels})
    widest = max((layer for _, layer in panels), default=0) + 1
    if len(depths) > 1 and widest <= columns:
        return {panel: (depths.index(panel[0]), panel[1]) for panel in panels}, len(depths), widest
    width = max(1, min(columns, len(panels)))
    return (
        {panel: divmod(index, width) for index, panel in enumerate(panels)},
        max(1, math.ceil(len(panels) / width)),
        width,
    )


def _reference(statistic: Statistic, last: int, mode: Mode) -> list[Trace]:
    """The line at 1 where 1 has a meaning, and for the relative norm the band that counts as nearly constant."""
    if not statistic.reference:
        return []
    line = {
        "x": [0, last],
        "y": [1, 1],
        "mode": "lines",
        "name": statistic.reference,
        "legendgroup": "reference",
        "legendrank": 2000,
        "line": {"color": QUIET[mode], "width": 1.2, "dash": "dash"},
        "hoverinfo": "skip",
    }
    if statistic.name != "relative":
        return [line]
    band = {
        "x": [0, last, last, 0],
        "y": [1 / TOLERANCE, 1 / TOLERANCE, TOLERANCE, TOLERANCE],
        "mode": "lines",
        "fill": "toself",
        "fillcolor": transparent(QUIET[mode], 0.14),
        "line": {"width": 0},
        "name": "within 10 %",
        "legendgroup": "tolerance",
        "legendrank": 2001,
        "hoverinfo": "skip",
    }
    return [band, line]


def _traces(
    group: HiddenNormGroup,
    mode: Mode,
    dash: str,
    edges: tuple[float, float],
    single_seeds: bool,
    divergences: Mapping[str, Divergence | None],
) -> list[Trace]:
    colour = cell_colour(group.cell, mode)
    title = cell_title(group.cell)
    traces = band(group.steps, group.low, group.high, colour=colour, title=title, group=group.cell, edges=edges)
    for run in group.single:
        if single_seeds or run.status == "diverged":
            traces.append(_seed(run, group, colour))
        if run.status == "diverged":
            traces.append(_end(run, group, colour, divergences.get(run.run_id)))
    return [*traces, _mean(group, colour, dash)]


def _mean(group: HiddenNormGroup, colour: str, dash: str) -> Trace:
    said = [
        f"n = {n}" + (f" {DOT} 95% {number(a)} to {number(b)}" if a is not None and b is not None else "")
        for n, a, b in zip(group.n, group.low, group.high, strict=True)
    ]
    title = cell_title(group.cell)
    return {
        "x": whole(group.steps),
        "y": small(group.mean),
        "text": said,
        "mode": "lines+markers",
        "name": title,
        "legendgroup": group.cell,
        "connectgaps": False,
        "line": {"color": colour, "width": 2.2, "dash": dash},
        "marker": {"symbol": cell_symbol(group.cell), "size": 6, "maxdisplayed": 10},
        "hovertemplate": f"{title}: <b>%{{y:.4g}}</b> {DOT} %{{text}}<extra></extra>",
    }


def _seed(run: SingleRun, group: HiddenNormGroup, colour: str) -> Trace:
    diverged = run.status == "diverged"
    return {
        "x": whole(run.steps),
        "y": small(run.values),
        "mode": "lines",
        "name": "one seed",
        "legendgroup": f"{group.cell} seeds",
        "showlegend": False,
        "connectgaps": False,
        "opacity": 0.9 if diverged else 0.55,
        "line": {"color": colour, "width": 1.2, "dash": "2px,3px" if diverged else "solid"},
        "hovertemplate": f"{cell_title(group.cell)}, seed {run.seed}: %{{y:.4g}} at step %{{x:,}}<extra></extra>",
    }


def _end(run: SingleRun, group: HiddenNormGroup, colour: str, divergence: Divergence | None) -> Trace:
    """A cross where the seed's curve ends, with the step and place of the first value that was not finite."""
    finite = [(s, v) for s, v in zip(run.steps, run.values, strict=True) if math.isfinite(v) and v > 0]
    step, value = finite[-1] if finite else (run.steps[-1] if run.steps else 0, math.nan)
    where = "" if divergence is None else _where(divergence)
    return {
        "x": [step],
        "y": small([value]),
        "mode": "markers",
        "name": "diverged",
        "legendgroup": "diverged",
        "legendrank": 1500,
        "marker": {"symbol": "x", "size": 9, "color": colour, "line": {"width": 0}},
        "hovertemplate": f"{cell_title(group.cell)}, seed {run.seed}: <b>diverged</b>{where}<extra></extra>",
    }


def _where(divergence: Divergence) -> str:
    place = "outside the layers" if divergence.layer is None else f"in layer {divergence.layer}"
    return f" at step {divergence.step:,} ({divergence.kind}, {place})"


def _mark(canvas: Canvas, panel: str, group: HiddenNormGroup, named: set[str]) -> None:
    """Mark the steps where seeds were left out because their value is not finite."""
    at = [index for index, count in enumerate(group.non_finite) if count]
    lost = [f"{group.non_finite[index]} of {group.non_finite[index] + group.n[index]} seeds" for index in at]
    canvas.mark_gaps(
        panel,
        [group.steps[index] for index in at],
        [f"{cell_title(group.cell)}: {count} not finite, left out" for count in lost],
        "not finite, left out",
        cell_colour(group.cell, canvas.mode),
        legendgroup="gaps",
        legendrank=1600,
        showlegend="gaps" not in named,
    )
    if at:
        named.add("gaps")
