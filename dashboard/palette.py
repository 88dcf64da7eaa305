"""How does each thing look? One colour and marker per cell, one dash per depth, in light and in dark.

Every colour reaches a contrast of 4.5 to its background, so that it serves text and lines alike. The three cells of the
stability comparison stay apart under red, green and blue blindness; the marker says the same once more.
"""

from dataclasses import dataclass
from typing import Literal

from client.palette import cell_order, cell_style

Mode = Literal["light", "dark"]

BACKGROUND: dict[Mode, str] = {"light": "#FFFFFF", "dark": "#11151B"}
TEXT: dict[Mode, str] = {"light": "#10161E", "dark": "#E6EAF0"}
QUIET: dict[Mode, str] = {"light": "#5D6778", "dark": "#A3AEBD"}
GRID: dict[Mode, str] = {"light": "#E6EAF0", "dark": "#28313D"}
AXIS: dict[Mode, str] = {"light": "#B9C2CF", "dark": "#465262"}
VOID: dict[Mode, str] = {"light": "#D5DBE4", "dark": "#323C4A"}
"""Where a heat map has no finite value."""
UNDER_TEXT = 0.45
"""Share of a colour in the fullest field of a map, so that a text on it can be read."""

GLYPHS = {
    "circle": "\u25cf",
    "square": "\u25a0",
    "diamond": "\u25c6",
    "triangle-up": "\u25b2",
    "triangle-down": "\u25bc",
    "hexagon": "\u2b22",
    "star": "\u2605",
    "cross": "\u271a",
}
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")

_TITLES = {"rotrnn": "RotRNN", "lru-learned": "LRU (learned)", "lru-tied": "LRU (tied)"}
_SYMBOLS = {
    "rotrnn": "circle",
    "lru": "square",
    "lru-tied": "diamond",
    "s5": "triangle-up",
    "s4d": "triangle-down",
    "s4": "hexagon",
    "gru": "cross",
    "transformer": "star",
}
_CELLS: dict[Mode, dict[str, str]] = {
    "light": {
        "rotrnn": "#0A559B",
        "rotrnn-authors": "#2C74B8",
        "rotrnn-ring": "#062F57",
        "rotrnn-authors-ring": "#56719B",
        "lru": "#C24E00",
        "lru-tied": "#0A8452",
        "s5": "#A8467F",
        "s4d": "#8A6400",
        "s4": "#1B7A96",
        "gru": "#1B2430",
        "transformer": "#6B6F76",
    },
    "dark": {
        "rotrnn": "#4FA8EE",
        "rotrnn-authors": "#8FC8F7",
        "rotrnn-ring": "#2F8FE0",
        "rotrnn-authors-ring": "#A9BEDC",
        "lru": "#F2965A",
        "lru-tied": "#5FE0B4",
        "s5": "#E29BC4",
        "s4d": "#E8BC5A",
        "s4": "#7FD3EE",
        "gru": "#E6EAF0",
        "transformer": "#A3A7AE",
    },
}
_DIVERGING: dict[Mode, tuple[str, ...]] = {
    "light": ("#44276F", "#8073AC", "#C9C3DF", "#F6F5F2", "#F6CE93", "#C9761A", "#7A3E06"),
    "dark": ("#C3B1F2", "#8F7CC9", "#4A4370", "#20262F", "#6B4718", "#C58334", "#FFCB8A"),
}


@dataclass(frozen=True)
class StatusLook:
    """A status in a word, a sentence, an icon, a sign for places without icons, and one of the theme's colours."""

    word: str
    meaning: str
    icon: str
    sign: str
    colour: Literal["red", "yellow", "green", "violet", "gray"]


STATUSES: dict[str, StatusLook] = {
    "queued": StatusLook("Queued", "waits for a free worker", "schedule", "\u25cb", "gray"),
    "running": StatusLook("Running", "trains on a worker now", "play_circle", "\u25b8", "violet"),
    "paused": StatusLook("Paused", "waits with a checkpoint until it is resumed", "pause_circle", "\u2016", "gray"),
    "cancelling": StatusLook("Cancelling", "ends at its next step", "stop_circle", "\u25aa", "gray"),
    "succeeded": StatusLook("Succeeded", "trained to the end and was tested", "check_circle", "\u2713", "green"),
    "diverged": StatusLook("Diverged", "met a value that is not finite: a result", "trending_up", "\u2197", "yellow"),
    "failed": StatusLook("Failed", "ended by a fault", "error", "\u2715", "red"),
    "cancelled": StatusLook("Cancelled", "ended by hand", "do_not_disturb_on", "\u2013", "gray"),
}
STATUS_COLOURS: dict[Mode, dict[str, str]] = {
    "light": {"red": "#B42332", "yellow": "#8F6400", "green": "#3F7A1E", "violet": "#6B4FBB", "gray": "#5D6778"},
    "dark": {"red": "#FF8A93", "yellow": "#E8BC5A", "green": "#8CCB6B", "violet": "#B7A1F5", "gray": "#A3AEBD"},
}
_LOUD = frozenset({"failed", "diverged", "running"})


def status_chip(status: str, mode: Mode) -> str:
    """The ground of a status in a table: full, for white letters, where it wants to be seen, and faint otherwise."""
    colour = status_look(status).colour
    if status in _LOUD:
        return STATUS_COLOURS["light"][colour]
    return blend(BACKGROUND[mode], STATUS_COLOURS[mode][colour], 0.16 if mode == "light" else 0.28)


def status_look(status: str) -> StatusLook:
    """How a status looks; one that is not known looks quiet and keeps its own name."""
    return STATUSES.get(status) or StatusLook(status.capitalize(), "not known to this page", "help", "?", "gray")


def cell_title(cell: str) -> str:
    """A cell's short name, as legends and tables write it."""
    return _TITLES.get(cell) or cell_style(cell).title


def cell_colour(cell: str, mode: Mode) -> str:
    """The colour of a cell; a variant that is not listed has its family's, an unknown family is quiet."""
    return _of(cell, _CELLS[mode], QUIET[mode])


def cell_chip(cell: str) -> str:
    """The ground of a cell in a table, for white letters in light and dark."""
    return cell_colour(cell, "light")


def cell_symbol(cell: str) -> str:
    """The marker of a cell in figures."""
    return _of(cell, _SYMBOLS, "circle")


def cell_glyph(cell: str) -> str:
    """The marker of a cell as a character."""
    return GLYPHS[cell_symbol(cell)]


def in_order(cells: set[str]) -> list[str]:
    """Cells in the order of every legend and table: RotRNN first."""
    return sorted(cells, key=cell_order)


def depth_dash(depth: int, depths: list[int]) -> str:
    """The line pattern of a depth among those that share a panel: the shallowest is solid."""
    return DASHES[sorted(depths).index(depth) % len(DASHES)]


def layer_shade(layer: int, layers: int, colour: str, mode: Mode) -> str:
    """A cell's colour from pale (first layer) to full (last)."""
    return blend(BACKGROUND[mode], colour, 1.0 if layers == 1 else 0.45 + 0.55 * layer / (layers - 1))


def diverging_scale(mode: Mode) -> list[list[float | str]]:
    """Below one is violet, above one is ochre, one itself is the page."""
    colours = _DIVERGING[mode]
    return [[index / (len(colours) - 1), colour] for index, colour in enumerate(colours)]


def transparent(colour: str, opacity: float) -> str:
    """A colour with an opacity in [0, 1], for bands."""
    red, green, blue = _channels(colour)
    return f"rgba({red},{green},{blue},{opacity:g})"


def blend(under: str, over: str, share: float) -> str:
    """`share` of one colour over another, both as #RRGGBB."""
    mixed = (round(u + (o - u) * share) for u, o in zip(_channels(under), _channels(over), strict=True))
    return "#" + "".join(f"{channel:02X}" for channel in mixed)


def _of(cell: str, table: dict[str, str], otherwise: str) -> str:
    return table.get(cell) or table.get(cell.split("-", 1)[0]) or otherwise


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
