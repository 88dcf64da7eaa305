"""How long is the hidden state along the sequence? One panel per layer, before and after training, with the theory."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from client import ProfileGroup
from dashboard.figures.axes import log_axis, small, whole
from dashboard.figures.bands import band
from dashboard.figures.canvas import Canvas, Trace
from dashboard.figures.norms import places
from dashboard.palette import QUIET, Mode, cell_colour, cell_symbol, cell_title, in_order, transparent
from dashboard.words import DOT, Statistic, number

ROW_HEIGHT = 190
Decays = Mapping[str, tuple[float, float]]
"""By cell: the smallest and the largest decay before training."""


def profiles_figure(
    before: Sequence[ProfileGroup],
    after: Sequence[ProfileGroup],
    statistic: Statistic,
    mode: Mode,
    *,
    columns: int,
    decays: Decays | None = None,
) -> go.Figure:
    """The norm at each place of the sequence: geometric mean over seeds with its 95% interval, last profile and first.

    Args:
        before: Groups of one task at the first kept step; drawn dotted, without bands.
        after: The same groups at the last kept step.
        statistic: What the groups hold; the theory is drawn where it speaks of it, for the norm of one head.
        mode: Light or dark.
        columns: How many panels may stand side by side.
        decays: Of cells whose first step is scaled as in the authors' code: for white input their norm begins as
            sqrt(1 - decay^(2t)), and the shape holds that for every decay between these two.
    """
    by_panel: dict[tuple[int, int], list[tuple[ProfileGroup, bool]]] = {}
    for groups, last in ((before, False), (after, True)):
        for group in groups:
            by_panel.setdefault((group.depth, group.layer), []).append((group, last))
    by_panel = dict(sorted(by_panel.items()))
    place_of, rows, width = places(list(by_panel), columns)
    every = [*before, *after]
    longest = max((group.positions[-1] for group in every), default=10)
    theory = _theory(statistic, longest, decays or {}, mode)
    low, high = _bounds(every, statistic)
    depths = {depth for depth, _ in by_panel}
    canvas = Canvas(mode, [ROW_HEIGHT] * rows, width, page=columns, bottom=56)
    named: set[str] = set()
    for panel, members in by_panel.items():
        row, column = place_of[panel]
        at = canvas.panel(
            row,
            column,
            title=f"depth {panel[0]} {DOT} layer {panel[1]}" if len(depths) > 1 else f"layer {panel[1]}",
            x=log_axis(0.93, longest * 1.07) | {"title_text": "place in the sequence"},
            y=log_axis(low, high) | {"showticklabels": column == 0, "title_text": "" if column else statistic.axis},
        )
        drawn = [trace for group, last in _ordered(members) for trace in _traces(group, mode, last=last)]
        for trace in [*theory, *drawn]:
            shown = trace.get("showlegend", True) and trace["legendgroup"] not in named
            named |= {trace["legendgroup"]} if shown else set()
            canvas.add(at, trace | {"showlegend": shown})
    return canvas.figure()


def _ordered(members: list[tuple[ProfileGroup, bool]]) -> list[tuple[ProfileGroup, bool]]:
    """RotRNN first; of each cell the profile before training first."""
    order = in_order({group.cell for group, _ in members})
    return sorted(members, key=lambda pair: (order.index(pair[0].cell), pair[1]))


def _bounds(groups: Sequence[ProfileGroup], statistic: Statistic) -> tuple[float, float]:
    """The positive range of every mean, of 1 where it has a meaning, and of intervals that do not dwarf the means."""
    means = [v for g in groups for v in g.mean if math.isfinite(v) and v > 0] + [1.0] * bool(statistic.reference)
    low, high = (min(means), max(means)) if means else (0.5, 2.0)
    slack = max(1.1, (high / low) ** 0.25)
    ends = [v for g in groups for v in (*g.low, *g.high) if v is not None and math.isfinite(v) and v > 0]
    low, high = max(min([low, *ends]), low / slack), min(max([high, *ends]), high * slack)
    pad = max(1.03, (high / low) ** 0.06)
    return low / pad, high * pad


def _theory(statistic: Statistic, longest: int, decays: Decays, mode: Mode) -> list[Trace]:
    if not statistic.reference:
        return []
    line = {"color": QUIET[mode], "width": 1.2, "dash": "dash"}
    common = {"hoverinfo": "skip", "line": line, "mode": "lines"}
    one = {
        "x": [1, longest],
        "y": [1, 1],
        "name": statistic.reference,
        "legendgroup": "reference",
        "legendrank": 2000,
    }
    times = np.unique(np.rint(np.geomspace(1, longest, 60)))
    shapes: list[Trace] = []
    for cell, bounds in decays.items() if statistic.name == "per_head" else ():
        least, most = (np.sqrt(-np.expm1(2 * times * math.log(decay))) for decay in sorted(bounds, reverse=True))
        shapes.append(
            {
                "x": small([*times, *times[::-1]]),
                "y": small([*most, *least[::-1]]),
                "fill": "toself",
                "fillcolor": transparent(QUIET[mode], 0.14),
                "line": {"width": 0},
                "mode": "lines",
                "hoverinfo": "skip",
                "name": f"{cell_title(cell)}: theory before training",
                "legendgroup": f"theory {cell}",
                "legendrank": 2001,
            }
        )
    return [*shapes, one | common]


def _traces(group: ProfileGroup, mode: Mode, *, last: bool) -> list[Trace]:
    colour, title = cell_colour(group.cell, mode), cell_title(group.cell)
    steps = sorted(set(group.steps))
    when = f"step {steps[0]:,}" if len(steps) == 1 else f"steps {steps[0]:,} to {steps[-1]:,}"
    said = [
        f"n = {n}" + (f" {DOT} 95% {number(a)} to {number(b)}" if a is not None and b is not None else "")
        for n, a, b in zip(group.n, group.low, group.high, strict=True)
    ]
    line = {
        "x": whole(group.positions),
        "y": small(group.mean),
        "text": said,
        "mode": "lines+markers" if last else "lines",
        "name": title if last else "before training",
        "legendgroup": group.cell if last else "before",
        "legendrank": 1000 if last else 1900,
        "connectgaps": False,
        "line": {"color": colour, "width": 2.2 if last else 1.3, "dash": "solid" if last else "dot"},
        "marker": {"symbol": cell_symbol(group.cell), "size": 6, "maxdisplayed": 10},
        "hovertemplate": f"{title}, {when}: <b>%{{y:.4g}}</b> {DOT} %{{text}}<extra></extra>",
    }
    if not last:
        return [line]
    return [*band(group.positions, group.low, group.high, colour=colour, title=title, group=group.cell), line]
