"""Do numbers and times read well? Also those that are not finite, and text that tries to be Markdown."""

import math
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from dashboard import words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (12_345.0, "12,345"),
        (0.12345, "0.123"),
        (12.3456, "12.3"),
        (1234.5, "1,234"),
        (3e-5, "3.00e-05"),
        (math.nan, "not a number"),
        (math.inf, "infinity"),
        (-math.inf, "\u2212infinity"),
        (None, "\u2014"),
    ],
)
def test_a_number_has_about_three_figures(value: float | None, text: str) -> None:
    assert words.number(value) == text


@pytest.mark.parametrize(
    ("spread", "text"),
    [
        (0.0, "\u00d71.000"),
        (math.log(1.07), "\u00d71.070"),
        (math.log(2.5), "\u00d72.50"),
        (math.log(31), "\u00d731.0"),
        (80.0, "\u00d7e^80"),
    ],
)
def test_a_spread_of_logarithms_reads_as_a_factor(spread: float, text: str) -> None:
    assert words.ratio(spread) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (4.4, "4 s"),
        (75, "1 min 15 s"),
        (1500, "25 min"),
        (7500, "2 h 5 min"),
        (7200, "2 h"),
        (200_000, "2 d 7 h"),
        (None, "\u2014"),
    ],
)
def test_a_length_of_time_is_said_in_two_units(seconds: float | None, text: str) -> None:
    assert words.duration(seconds) == text


def test_a_moment_is_said_in_the_readers_zone() -> None:
    noon = datetime(2026, 7, 1, 12, 0, 5, tzinfo=UTC)
    assert words.clock(noon, ZoneInfo("Asia/Tokyo")) == "21:00:05"
    assert words.day_and_clock(noon, ZoneInfo("Asia/Tokyo")) == "1 Jul 21:00"


@pytest.mark.parametrize(
    "text", ["# head", "**bold**", "[a](http://b)", "<b>x</b>", ":red[x]", "$x^2$", "`x`", "- item", "a\n# b", "&lt;"]
)
def test_user_text_keeps_every_sign_as_a_sign(text: str) -> None:
    shown = words.plain(text)
    assert "\n" not in shown
    for at, sign in enumerate(shown):
        if sign in "*_[]<>#`$:&":
            assert shown[at - 1] == "\\"
    assert shown.replace("\\", "") == " ".join(text.split())


def test_a_list_of_words_ends_with_and() -> None:
    assert [words.listed(list(parts)) for parts in ("a", "ab", "abc")] == ["a", "a and b", "a, b and c"]
    assert words.plural(1, "run") == "1 run"
    assert words.plural(1_200, "run") == "1,200 runs"
