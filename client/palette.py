"""How does each cell look in a figure? Titles, colour-blind safe colours (after Okabe and Ito) and line patterns."""

from dataclasses import dataclass


@dataclass(frozen=True)
class CellStyle:
    """Title, colour and dash pattern (on and off lengths in points, empty when solid) of a cell."""

    title: str
    colour: str
    dashes: tuple[float, ...] = ()


CELL_STYLES: dict[str, CellStyle] = {
    "rotrnn": CellStyle("RotRNN", "#0072B2"),
    "rotrnn-authors": CellStyle("RotRNN, authors' first step", "#5E9BD1", (8, 2, 2, 2)),
    "rotrnn-ring": CellStyle("RotRNN, ring initialisation", "#003E66", (8, 2, 2, 2)),
    "rotrnn-authors-ring": CellStyle("RotRNN, authors' first step, ring", "#8AB6E1", (8, 2, 2, 2)),
    "lru-learned": CellStyle("LRU, learned normaliser", "#D55E00", (6, 2)),
    "lru-tied": CellStyle("LRU, tied normaliser", "#009E73", (2, 1.5)),
    "s5": CellStyle("S5", "#CC79A7", (5, 1.5, 1.5, 1.5)),
    "s4d-legs": CellStyle("S4D-LegS", "#E69F00", (4, 1.5)),
    "s4": CellStyle("S4", "#56B4E9", (8, 2)),
    "gru": CellStyle("GRU", "#000000", (1.5, 1.5)),
    "transformer": CellStyle("Transformer", "#7F7F7F", (1.5, 1.5)),
}
FALLBACK_COLOURS = ("#E69F00", "#CC79A7", "#56B4E9", "#000000")
VARIANT_DASHES = (6, 1.5, 1.5, 1.5, 1.5, 1.5)


def cell_style(cell: str) -> CellStyle:
    """The style of a cell's label; a variant that is not listed takes its family's colour."""
    known = CELL_STYLES.get(cell)
    if known:
        return known
    family = next((style for name, style in CELL_STYLES.items() if name.split("-")[0] == cell.split("-")[0]), None)
    colour = family.colour if family else FALLBACK_COLOURS[sum(cell.encode()) % len(FALLBACK_COLOURS)]
    return CellStyle(cell, colour, VARIANT_DASHES)


def cell_order(cell: str) -> tuple[int, str]:
    """Sort key: RotRNN first, then the cells in the order of CELL_STYLES, then the rest by name."""
    known = list(CELL_STYLES)
    return (known.index(cell) if cell in known else len(known), cell)
