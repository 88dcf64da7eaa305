"""Can everybody read the colours? Contrast of text, and distance of the compared cells under colour blindness."""

import itertools
import tomllib
from pathlib import Path

import numpy as np
import pytest

from client.palette import CELL_STYLES
from dashboard import palette
from dashboard.palette import BACKGROUND, STATUSES, Mode

MODES: tuple[Mode, Mode] = ("light", "dark")
COMPARED = ("rotrnn", "lru-learned", "lru-tied")
BLINDNESS = {
    "none": np.eye(3),
    "red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
"""Machado, Oliveira and Fernandes 2009, full severity, on linear RGB."""


def linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""
    low, high = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def seen(colour: str, matrix: object) -> np.ndarray:
    """A colour in Oklab, times 100, as an eye with that blindness sees it."""
    rgb = np.clip(np.array(matrix) @ linear(colour), 0, 1)
    cones = [
        [0.41222147, 0.53633254, 0.05144599],
        [0.21190350, 0.68069955, 0.10739696],
        [0.08830246, 0.28171884, 0.62997870],
    ]
    lab = [
        [0.21045426, 0.79361779, -0.00407205],
        [1.97799850, -2.42859221, 0.45059371],
        [0.02590404, 0.78277177, -0.80867577],
    ]
    return 100 * (np.array(lab) @ np.cbrt(np.array(cones) @ rgb))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("cell", [*CELL_STYLES, "s5-free", "nobody-knows-it"])
def test_the_colour_of_every_cell_serves_as_text(cell: str, mode: Mode) -> None:
    assert contrast(palette.cell_colour(cell, mode), BACKGROUND[mode]) >= 4.5


@pytest.mark.parametrize("mode", MODES)
def test_text_and_states_reach_the_contrast_of_text(mode: Mode) -> None:
    states = {palette.STATUS_COLOURS[mode][look.colour] for look in STATUSES.values()}
    for colour in (palette.TEXT[mode], palette.QUIET[mode], *states):
        assert contrast(colour, BACKGROUND[mode]) >= 4.5


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("blindness", BLINDNESS)
def test_the_compared_cells_stay_apart_in_every_eye(blindness: str, mode: Mode) -> None:
    colours = [seen(palette.cell_colour(cell, mode), BLINDNESS[blindness]) for cell in COMPARED]
    assert min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(colours, 2)) > 8


@pytest.mark.parametrize("mode", MODES)
def test_buttons_and_chosen_words_can_be_read(mode: Mode) -> None:
    theme = tomllib.loads((Path(palette.__file__).parent / ".streamlit" / "config.toml").read_text())["theme"]
    primary = theme[mode]["primaryColor"]
    assert f"color: {BACKGROUND['dark']};" in (Path(palette.__file__).parent / "assets" / "dark.css").read_text()
    # Buttons say white on it, on a dark page the page's colour; a chosen word stands in it on a tinge of itself.
    said = "#FFFFFF" if mode == "light" else BACKGROUND[mode]
    assert contrast(said, primary) >= 4.5
    assert contrast(primary, palette.blend(BACKGROUND[mode], primary, 0.1)) >= 4.5
    # Captions are text of which the page shows 40 % through.
    assert contrast(palette.blend(BACKGROUND[mode], theme[mode]["textColor"], 0.6), BACKGROUND[mode]) >= 4.5


@pytest.mark.parametrize("mode", MODES)
def test_a_number_can_be_read_on_the_fullest_field_of_a_map(mode: Mode) -> None:
    colours = [palette.STATUS_COLOURS[mode]["green"], *(palette.cell_colour(cell, mode) for cell in COMPARED)]
    for colour in colours:
        assert contrast(palette.TEXT[mode], palette.blend(BACKGROUND[mode], colour, palette.UNDER_TEXT)) >= 4.5


def test_the_compared_cells_differ_in_their_marker_too() -> None:
    assert len({palette.cell_symbol(cell) for cell in COMPARED}) == 3


def test_a_variant_has_the_colour_of_its_family() -> None:
    assert palette.cell_colour("s4d-lin-bilinear", "light") == palette.cell_colour("s4d", "light")


def test_every_depth_that_shares_a_panel_has_its_own_dash() -> None:
    depths = [4, 1, 6, 2]
    assert len({palette.depth_dash(depth, depths) for depth in depths}) == 4
    assert palette.depth_dash(1, depths) == "solid"


def test_the_last_layer_has_the_full_colour_and_the_first_is_paler() -> None:
    colour = palette.cell_colour("rotrnn", "light")
    shades = [palette.layer_shade(layer, 4, colour, "light") for layer in range(4)]
    assert shades[-1] == colour
    assert [contrast(shade, "#FFFFFF") for shade in shades] == sorted(contrast(shade, "#FFFFFF") for shade in shades)
    assert palette.layer_shade(0, 1, colour, "light") == colour


def test_rotrnn_stands_first_everywhere() -> None:
    assert palette.in_order({"lru-tied", "gru", "rotrnn", "lru-learned"})[:3] == list(COMPARED)


def test_every_status_has_its_own_word_icon_and_sign() -> None:
    for field in ("word", "icon", "sign"):
        assert len({getattr(look, field) for look in STATUSES.values()}) == len(STATUSES)


def test_an_unknown_status_keeps_its_name() -> None:
    assert palette.status_look("hibernating").word == "Hibernating"
