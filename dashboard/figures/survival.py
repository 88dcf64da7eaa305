"""How many seeds are still sound? The share neither diverged nor stuck, by training step, one panel per depth."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from client.seeds import SurvivalGroup
from dashboard.figures.axes import step_axis
from dashboard.figures.canvas import Canvas, Trace
from dashboard.palette import Mode, cell_colour, cell_symbol, cell_title, in_order, transparent
from dashboard.sheets import Sheet
from dashboard.words import DOT, percent, plural

ROW_HEIGHT = 150


def survival_figure(groups: Sequence[SurvivalGroup], mode: Mode, *, columns: int) -> go.Figure:
    """Steps down at each loss, with Wilson's 95% interval, of groups of one task; each up to its last known step."""
    last = max((group.steps[-1] for group in groups if group.steps), default=1)
    depths = sorted({group.depth for group in groups})
    width = max(1, min(columns, len(depths)))
    rows = max(1, math.ceil(len(depths) / width))
    canvas = Canvas(mode, [ROW_HEIGHT] * rows, width, page=columns, bottom=52, unified=False)
    named: set[str] = set()
    for at, depth in enumerate(depths):
        row, column = divmod(at, width)
        panel = canvas.panel(
            row,
            column,
            title=f"depth {depth}",
            x=step_axis(0, last * 1.01 or 1) | {"title_text": "training step"},
            y={
                "range": [-0.04, 1.06],
                "tickmode": "array",
                "tickvals": [0, 0.25, 0.5, 0.75, 1],
                "ticktext": ["0 %", "25 %", "50 %", "75 %", "100 %"],
                "showticklabels": column == 0,
                "title_text": "" if column else "sound seeds",
            },
        )
        inside = {group.cell: group for group in groups if group.depth == depth}
        for cell in in_order(set(inside)):
            for trace in _traces(inside[cell], mode):
                shown = trace.get("showlegend", True) and cell not in named
                named |= {cell} if shown else set()
                canvas.add(panel, trace | {"showlegend": shown})
    return canvas.figure()


def survival_words(groups: Sequence[SurvivalGroup]) -> str:
    """Which cells lost seeds, in a line."""
    lost = [
        f"{cell_title(g.cell)} at depth {g.depth} lost {g.diverged + g.stuck} of {len(g.run_ids)} "
        f"({g.diverged} diverged, {g.stuck} stuck)"
        for g in groups
        if g.diverged or g.stuck
    ]
    total = sum(len(group.run_ids) for group in groups)
    if not lost:
        return f"No seed was lost: none of {plural(total, 'run')} diverged or is stuck at chance."
    return "; ".join(lost[:6]) + (f"; and {len(lost) - 6} more" if len(lost) > 6 else "") + "."


def survival_sheet(groups: Sequence[SurvivalGroup]) -> Sheet:
    """One line per group and step at which a seed was lost."""
    pairs = [(group, at) for group in groups for at in range(len(group.steps))]
    sheet: Sheet = {name: [getattr(group, name) for group, _ in pairs] for name in ("task", "cell", "depth")}
    for column, name in (("step", "steps"), *((n, n) for n in ("at_risk", "lost", "share", "low", "high"))):
        sheet[column] = [getattr(group, name)[at] for group, at in pairs]
    return sheet


def _traces(group: SurvivalGroup, mode: Mode) -> list[Trace]:
    colour, title = cell_colour(group.cell, mode), cell_title(group.cell)
    n = len(group.run_ids)
    said = [
        f"{percent(share, 0)} of {plural(n, 'run')} sound at step {step:,}"
        for step, share in zip(group.steps, group.share, strict=True)
    ]
    line = {
        "x": list(group.steps),
        "y": list(group.share),
        "text": said,
        "mode": "lines+markers",
        "name": title,
        "legendgroup": group.cell,
        "line": {"color": colour, "width": 2.2, "shape": "hv"},
        "marker": {"symbol": cell_symbol(group.cell), "size": 7},
        "hovertemplate": f"{title} {DOT} %{{text}}<extra></extra>",
    }
    return [*_band(group, colour), line]


def _band(group: SurvivalGroup, colour: str) -> list[Trace]:
    if not group.low:
        return []
    x: list[int] = []
    low: list[float] = []
    high: list[float] = []
    for begin, end, a, b in zip(group.steps, (*group.steps[1:], group.steps[-1]), group.low, group.high, strict=True):
        x, low, high = [*x, begin, end], [*low, a, a], [*high, b, b]
    band: Trace = {
        "x": [*x, *reversed(x)],
        "y": [*high, *reversed(low)],
        "mode": "lines",
        "fill": "toself",
        "fillcolor": transparent(colour, 0.14),
        "line": {"width": 0},
        "name": f"{cell_title(group.cell)}, 95% interval",
        "legendgroup": group.cell,
        "showlegend": False,
        "hoverinfo": "skip",
    }
    return [band]
