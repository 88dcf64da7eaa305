"""Where does an interval lie? A closed polygon for each stretch of points that has one."""

import math
from collections.abc import Sequence

from dashboard.figures.axes import small
from dashboard.figures.canvas import Trace
from dashboard.palette import transparent

Bounds = Sequence[float | None]
EVERYWHERE = (-math.inf, math.inf)


def band(
    x: Sequence[float],
    lows: Bounds,
    highs: Bounds,
    *,
    colour: str,
    title: str,
    group: str,
    edges: tuple[float, float] = EVERYWHERE,
) -> list[Trace]:
    """The interval as one trace; none where no point has one.

    Args:
        x: Place of each point.
        lows: Lower bound of each; None or not finite where there is none.
        highs: Upper bound of each.
        colour: Of the line that it belongs to.
        title: The line's name.
        group: The line's group in the legend, with which the band comes and goes.
        edges: Where it is cut, on an axis that does not hold all of it.
    """
    xs: list[float] = []
    ys: list[float] = []
    for stretch in stretches(lows, highs):
        xs += [*(x[i] for i in stretch), *(x[i] for i in reversed(stretch)), math.nan]
        ys += [min(edges[1], float(highs[i] or 0)) for i in stretch]
        ys += [max(edges[0], float(lows[i] or 0)) for i in reversed(stretch)]
        ys.append(math.nan)
    trace: Trace = {
        "x": small(xs),
        "y": small(ys),
        "mode": "lines",
        "fill": "toself",
        "fillcolor": transparent(colour, 0.18),
        "line": {"width": 0},
        "name": f"{title}, 95% interval",
        "legendgroup": group,
        "showlegend": False,
        "hoverinfo": "skip",
    }
    return [trace] if xs else []


def stretches(lows: Bounds, highs: Bounds) -> list[list[int]]:
    """The runs of neighbouring indices that have a finite interval."""
    found: list[list[int]] = [[]]
    for index, (low, high) in enumerate(zip(lows, highs, strict=True)):
        if low is not None and high is not None and math.isfinite(low) and math.isfinite(high):
            found[-1].append(index)
        elif found[-1]:
            found.append([])
    return [stretch for stretch in found if stretch]
