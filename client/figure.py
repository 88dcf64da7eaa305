"""What does the stability figure look like? A pure function from compared traces to a matplotlib figure.

One row per depth, one panel per layer: training step along x, the hidden norm on a log axis, one colour per cell, the
mean over seeds with its 95% interval, and every single seed as a thin line.
"""

import math
import os
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from client import log_axis
from client.palette import cell_order, cell_style
from client.results import HiddenNormComparison, HiddenNormGroup

INK, MUTED, RULE, UNCHANGED = "#202124", "#5f6368", "#e3e5e8", "#eceef1"
TITLES = {
    "relative": "Hidden-state norm, relative to its value before training",
    "whole": "Hidden-state norm of each layer's whole state",
    "per_head": "Hidden-state norm, mean over heads",
}
AXIS_TITLES = {"relative": "norm / norm at step 0", "whole": "norm", "per_head": "norm per head"}
TOLERANCE = 1.1
"""The grey band holds the norms within this factor of the value before training."""


def stability_figure(comparison: HiddenNormComparison, *, task_title: str | None = None) -> Figure:
    """Draw hidden norms over training for every cell, depth and layer of one task.

    Args:
        comparison: Groups of one task; with single runs, each seed is drawn as well.
        task_title: The task's name for people.

    Raises:
        ValueError: There is nothing to draw, or the groups are of several tasks.
    """
    groups = comparison.groups
    tasks = sorted({group.task for group in groups})
    if len(tasks) != 1:
        raise ValueError(f"a figure shows one task, not {len(tasks)}: {', '.join(tasks) or 'no run has a trace yet'}")
    layout = _layout(comparison)
    figure = Figure(figsize=(layout.width, layout.height), facecolor="white")
    FigureCanvasAgg(figure)
    limits = log_axis.limits(groups, middle=1.0 if comparison.statistic == "relative" else None)
    for row, depth in enumerate(layout.depths):
        for column, layer in enumerate(layout.layers):
            inside = [group for group in groups if (group.depth, group.layer) == (depth, layer)]
            if inside:
                panel = figure.add_axes(layout.panel(row, column), label=f"depth {depth} layer {layer}")
                _draw(panel, inside)
                _dress(panel, comparison.statistic, limits)
                panel.tick_params(axis="y", labelleft=column == 0)
                panel.set_title(f"layer {layer}", loc="left", fontsize=8.5, color=MUTED, pad=4)
                if column == 0:
                    panel.set_ylabel(AXIS_TITLES[comparison.statistic], fontsize=8.5, color=INK)
                    _name_row(figure, panel, depth, layout)
                if row == len(layout.depths) - 1:
                    panel.set_xlabel("training step", fontsize=8.5, color=INK)
                else:
                    panel.tick_params(axis="x", labelbottom=False)
    _write_words(figure, comparison, layout, task_title or tasks[0])
    _add_legend(figure, comparison, layout)
    return figure


def write_png(figure: Figure, path: Path, *, dpi: int = 200) -> None:
    """Write the figure whole or not at all.

    Raises:
        OSError: It cannot be written there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    figure.savefig(unfinished, format="png", dpi=dpi)
    unfinished.replace(path)


@dataclass(frozen=True)
class _Layout:
    """Where things stand, in inches from the upper left corner."""

    depths: Sequence[int]
    layers: Sequence[int]
    panel_width: float
    top: float
    legend_corner: tuple[float, float]
    legend_columns: int

    MARGIN, LEFT, RIGHT, BOTTOM = 0.3, 1.02, 0.3, 1.05
    PANEL_HEIGHT, GAP_X, GAP_Y = 1.55, 0.16, 0.4

    @property
    def width(self) -> float:
        return self.left_of(len(self.layers)) - self.GAP_X + self.RIGHT

    @property
    def height(self) -> float:
        rows = len(self.depths)
        return self.top + rows * self.PANEL_HEIGHT + (rows - 1) * self.GAP_Y + self.BOTTOM

    def left_of(self, column: int) -> float:
        return self.LEFT + column * (self.panel_width + self.GAP_X)

    def panel(self, row: int, column: int) -> tuple[float, float, float, float]:
        """Left, bottom, width and height of a panel as shares of the figure."""
        under = self.top + (row + 1) * self.PANEL_HEIGHT + row * self.GAP_Y
        return (
            self.left_of(column) / self.width,
            1 - under / self.height,
            self.panel_width / self.width,
            self.PANEL_HEIGHT / self.height,
        )


def _layout(comparison: HiddenNormComparison) -> _Layout:
    """The legend stands in the free corner beside shallow networks, or else above the panels."""
    depths = sorted({group.depth for group in comparison.groups})
    layers = sorted({group.layer for group in comparison.groups})
    panel_width = max(2.3, 5.2 / len(layers) - _Layout.GAP_X)
    shallow = len({group.layer for group in comparison.groups if group.depth == depths[0]})
    labels = _legend_labels(comparison)
    needed = max(0.6 + 0.075 * len(label) for label in labels)
    beside = _Layout(depths, layers, panel_width, 1.0, (0.0, 1.0), 1)
    corner = beside.left_of(shallow)
    if beside.width - corner >= needed:
        return replace(beside, legend_corner=(corner + 0.06, 1.0))
    per_line = max(1, min(len(labels), int((beside.width - 2 * _Layout.MARGIN) // needed)))
    lines = -(-len(labels) // per_line)
    return replace(beside, top=1.02 + 0.19 * lines, legend_corner=(_Layout.MARGIN, 0.82), legend_columns=per_line)


def _draw(panel: Axes, groups: Iterable[HiddenNormGroup]) -> None:
    for group in sorted(groups, key=lambda group: cell_order(group.cell), reverse=True):
        style = cell_style(group.cell)
        for run in group.single:
            panel.plot(run.steps, run.values, color=style.colour, linewidth=0.6, alpha=0.4, zorder=2, gid="seed")
            end = _last_finite(run.steps, run.values)
            if run.status == "diverged" and end:
                panel.plot(*end, marker="x", markersize=5, color=style.colour, zorder=5, gid="diverged")
        bounded = [
            (step, low, high)
            for step, low, high in zip(group.steps, group.low, group.high, strict=True)
            if low is not None and high is not None and math.isfinite(low) and math.isfinite(high)
        ]
        if bounded:
            steps, lows, highs = zip(*bounded, strict=True)
            band = panel.fill_between(steps, lows, highs, color=style.colour, alpha=0.16, linewidth=0, zorder=3)
            band.set_gid("interval")
        line = panel.plot(group.steps, group.mean, color=style.colour, linewidth=1.7, zorder=4, label=group.cell)[0]
        line.set_gid("mean")
        if style.dashes:
            line.set_linestyle((0, style.dashes))


def _dress(panel: Axes, statistic: str, limits: tuple[float, float]) -> None:
    panel.set_yscale("log")
    panel.set_ylim(*limits)
    panel.yaxis.set_major_locator(FixedLocator(log_axis.ticks(*limits)))
    panel.yaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.xaxis.set_major_locator(MaxNLocator(4, integer=True, steps=[1, 2, 2.5, 5, 10]))
    panel.margins(x=0.02)
    panel.grid(axis="y", color=RULE, linewidth=0.6, zorder=0)
    panel.set_axisbelow(True)
    if statistic == "relative":
        panel.axhspan(1 / TOLERANCE, TOLERANCE, color=UNCHANGED, linewidth=0, zorder=0.5, gid="unchanged")
        panel.axhline(1.0, color=MUTED, linewidth=0.8, zorder=1, gid="reference")
    for side in ("top", "right", "left"):
        panel.spines[side].set_visible(False)
    panel.spines["bottom"].set(color=MUTED, linewidth=0.8)
    panel.tick_params(axis="both", labelsize=8, color=MUTED, labelcolor=INK, length=3, width=0.8)
    panel.tick_params(axis="y", length=0)


def _name_row(figure: Figure, panel: Axes, depth: int, layout: _Layout) -> None:
    place = panel.get_position()
    figure.text(
        (layout.MARGIN + 0.06) / layout.width,
        place.y0 + place.height / 2,
        f"depth {depth}",
        fontsize=9.5,
        fontweight="bold",
        color=INK,
        rotation=90,
        va="center",
        ha="center",
    )


def _write_words(figure: Figure, comparison: HiddenNormComparison, layout: _Layout, task_title: str) -> None:
    left = layout.MARGIN / layout.width
    seeds = _span(len(group.seeds) for group in comparison.groups)
    subtitle = f"{task_title}; mean over {seeds} with 95% interval; thin lines are single seeds"
    title = TITLES[comparison.statistic]
    figure.text(left, 1 - 0.36 / layout.height, title, fontsize=13, fontweight="bold", color=INK, va="center")
    figure.text(left, 1 - 0.6 / layout.height, subtitle, fontsize=9, color=MUTED, va="center")
    caption = textwrap.fill(_caption(comparison), int(17.5 * (layout.width - 2 * layout.MARGIN)))
    figure.text(left, 0.16 / layout.height, caption, fontsize=7.5, color=MUTED, va="bottom", linespacing=1.4)


def _add_legend(figure: Figure, comparison: HiddenNormComparison, layout: _Layout) -> None:
    handles: list[Any] = []
    for cell in _cells(comparison):
        style = cell_style(cell)
        line = Line2D([], [], color=style.colour, linewidth=1.7)
        if style.dashes:
            line.set_linestyle((0, style.dashes))
        handles.append((Patch(facecolor=style.colour, alpha=0.16), line))
    if comparison.statistic == "relative":
        handles.append((Patch(facecolor=UNCHANGED), Line2D([], [], color=MUTED, linewidth=0.8)))
    left, top = layout.legend_corner
    figure.legend(
        handles,
        _legend_labels(comparison),
        loc="upper left",
        bbox_to_anchor=(left / layout.width, 1 - top / layout.height),
        ncols=layout.legend_columns,
        frameon=False,
        fontsize=9,
        labelcolor=INK,
        handlelength=2.6,
        columnspacing=1.6,
        borderpad=0,
        borderaxespad=0,
        handler_map={tuple: HandlerTuple(ndivide=1, pad=0)},
    )


def _legend_labels(comparison: HiddenNormComparison) -> list[str]:
    labels = [cell_style(cell).title for cell in _cells(comparison)]
    return (
        [*labels, f"unchanged, and within a factor of {TOLERANCE:g}"] if comparison.statistic == "relative" else labels
    )


def _cells(comparison: HiddenNormComparison) -> list[str]:
    return sorted({group.cell for group in comparison.groups}, key=cell_order)


def _caption(comparison: HiddenNormComparison) -> str:
    sentences = [
        "Band: 95% t interval of the mean, over the seeds whose value is finite at that step.",
        "Norms are measured on one fixed batch of the validation split, mean over batch and valid time; "
        "layer 0 is next to the input.",
    ]
    ended = {
        f"{group.cell} depth {group.depth} seed {run.seed}"
        for group in comparison.groups
        for run in group.single
        if run.status == "diverged"
    }
    if ended:
        sentences.append(f"A cross marks where a run diverged: {', '.join(sorted(ended))}.")
    return " ".join([*sentences, *(f"{warning.rstrip('.')}." for warning in comparison.warnings)])


def _last_finite(steps: Sequence[int], values: Sequence[float]) -> tuple[int, float] | None:
    return next(((s, v) for s, v in zip(reversed(steps), reversed(values), strict=True) if math.isfinite(v)), None)


def _span(counts: Iterable[int]) -> str:
    numbers = sorted(set(counts))
    if numbers == [1]:
        return "n = 1 seed"
    return f"n = {numbers[0]} seeds" if len(numbers) == 1 else f"n = {numbers[0]} to {numbers[-1]} seeds"
