"""Where and when does the hidden norm leave its start? A map of layer against training step for each cell."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from client import HiddenNormGroup
from dashboard.figures.axes import step_axis
from dashboard.figures.canvas import SMALL, Canvas
from dashboard.palette import QUIET, VOID, Mode, cell_colour, cell_glyph, cell_title, diverging_scale, in_order
from dashboard.words import DOT, TIMES

LEAST = math.log(1.1)
"""The colours span at least a factor of 1.1 each way, so that noise does not look like drama."""
BAR_LENGTH = 120
LAYER_HEIGHT, LEAST_LAYERS = 30, 3
"""A map is at least as high as so many layers, so that a single layer is no thread."""


@dataclass(frozen=True)
class HeatMap:
    """One cell at one depth: ln of the mean norm's ratio to its first recorded value, (layers, steps)."""

    cell: str
    depth: int
    steps: NDArray[np.int32]
    growth: NDArray[np.float64]

    @property
    def layers(self) -> int:
        """Number of layers."""
        return int(self.growth.shape[0])

    @property
    def edges(self) -> tuple[float, float]:
        """Where the map begins and ends along the steps: half a step beyond its columns."""
        steps = self.steps.astype(float)
        first, last = (steps[1] - steps[0], steps[-1] - steps[-2]) if len(steps) > 1 else (1.0, 1.0)
        return float(steps[0] - first / 2), float(steps[-1] + last / 2)


def heat_maps(groups: Sequence[HiddenNormGroup]) -> list[HeatMap]:
    """The maps in the order of the page: by depth, RotRNN first."""
    cells = in_order({group.cell for group in groups})
    pairs = sorted({(group.depth, cells.index(group.cell)) for group in groups if group.steps})
    return [_map([g for g in groups if g.depth == depth and g.cell == cells[at] and g.steps]) for depth, at in pairs]


def heat_figure(groups: Sequence[HiddenNormGroup], mode: Mode, *, columns: int) -> go.Figure:
    """The mean norm over seeds relative to its first recorded step, on one diverging logarithmic scale around 1.

    Args:
        groups: Groups of one task and one statistic; each depth and cell makes one map.
        mode: Light or dark.
        columns: How many maps may stand side by side; cells that do not fit stand below each other.
    """
    maps = heat_maps(groups)
    cells = in_order({one.cell for one in maps})
    depths = sorted({one.depth for one in maps})
    width = len(cells) if 1 < len(cells) <= columns else 1
    places = [
        (depths.index(one.depth), cells.index(one.cell)) if width > 1 else (index, 0) for index, one in enumerate(maps)
    ]
    heights = [LEAST_LAYERS] * max((row + 1 for row, _ in places), default=1)
    for one, (row, _) in zip(maps, places, strict=True):
        heights[row] = max(heights[row], one.layers)
    beside = columns > 1
    canvas = Canvas(
        mode,
        [LAYER_HEIGHT * height for height in heights],
        width,
        gap_x=0.035,
        gap_y=52,
        bottom=50,
        unified=False,
    )
    for one, place in zip(maps, places, strict=True):
        _draw(canvas, one, place, several=len(depths) > 1)
    finite = [float(np.nanmax(np.abs(one.growth))) for one in maps if np.isfinite(one.growth).any()]
    axis = _colour_axis(max([LEAST, *finite]), mode, beside=beside)
    return canvas.figure(legend=False, top=6 if beside else 44, coloraxis=axis, plot_bgcolor=VOID[mode])


def _map(found: Sequence[HiddenNormGroup]) -> HeatMap:
    steps = sorted({step for group in found for step in group.steps})
    at = {step: index for index, step in enumerate(steps)}
    growth = np.full((max(group.layer for group in found) + 1, len(steps)), math.nan)
    for group in found:
        means = np.array(group.mean)
        with np.errstate(all="ignore"):
            logs = np.log(means / means[0])
        growth[group.layer, [at[step] for step in group.steps]] = np.where(np.isfinite(logs), logs, math.nan)
    return HeatMap(found[0].cell, found[0].depth, np.array(steps, dtype=np.int32), growth)


def _draw(canvas: Canvas, one: HeatMap, place: tuple[int, int], *, several: bool) -> None:
    name = cell_title(one.cell) + (f" {DOT} depth {one.depth}" if several else "")
    mark = f"<span style='color:{cell_colour(one.cell, canvas.mode)}'>{cell_glyph(one.cell)}</span>"
    bare = {"showgrid": False, "showline": False}
    panel = canvas.panel(
        *place,
        title=f"{mark} {name}",
        x=step_axis(*one.edges) | bare | {"title_text": "training step"},
        y=bare
        | {
            "range": [one.layers - 0.5, -0.5],
            "tickmode": "linear",
            "dtick": 1 if one.layers <= 8 else 4,
            "ticks": "",
            "title_text": "" if place[1] else "layer",
        },
    )
    canvas.add(
        panel,
        {
            "type": "heatmap",
            "x": one.steps,
            "y": list(range(one.layers)),
            "z": one.growth.astype(np.float32),
            "customdata": np.exp(one.growth).astype(np.float32),
            "coloraxis": "coloraxis",
            "ygap": 1,
            "hoverongaps": False,
            "hovertemplate": f"{name}<br>layer %{{y}}, step %{{x:,}}: <b>{TIMES}%{{customdata:.3g}}</b><extra></extra>",
        },
    )


def _colour_axis(reach: float, mode: Mode, *, beside: bool) -> dict[str, object]:
    ticks = [tick for tick in _factors(reach) if abs(math.log(tick)) <= reach * 1.001]
    font = {"size": SMALL, "color": QUIET[mode]}
    bar: dict[str, object] = {
        "title": {"text": "times its start" if beside else "", "side": "right", "font": font},
        "tickvals": [math.log(tick) for tick in ticks],
        "ticktext": [_factor(tick) for tick in ticks],
        "tickfont": font,
        "outlinewidth": 0,
        "thickness": 12,
        "xpad": 12,
        "ypad": 0,
    }
    if beside:
        bar |= {"lenmode": "pixels", "len": BAR_LENGTH, "y": 1, "yanchor": "top"}
    else:
        bar |= {"orientation": "h", "len": 1, "x": 0.5, "y": 1, "yref": "container", "yanchor": "top", "ypad": 8}
    return {"colorscale": diverging_scale(mode), "cmin": -reach, "cmax": reach, "colorbar": bar}


def _factor(value: float) -> str:
    return f"{TIMES}1/{1 / value:.3g}" if value < 0.51 else f"{TIMES}{value:.3g}"


def _factors(reach: float) -> list[float]:
    """Factors for the colour bar, their inverses, and 1 between them."""
    steps = ([1.05, 1.1], [1.1, 1.2], [1.2, 1.5], [1.5, 2], [2, 4], [3, 10], [10, 100], [100, 10_000])
    chosen = next((factors for factors in steps if math.log(factors[-1]) >= reach * 0.6), steps[-1])
    return [*(1 / factor for factor in reversed(chosen)), 1.0, *chosen]
