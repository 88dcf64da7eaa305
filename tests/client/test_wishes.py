"""Does the command line mean what a person typed?"""

import json
from pathlib import Path
from typing import Any

import pytest
import typer

from client.catalogue import Recipe
from client.cli.wishes import configuration, grid, laid_over, parsed, set_field, whole_numbers


class Recipes:
    """Knows one recipe, and nothing else of a client."""

    def recipes(self) -> tuple[Recipe, ...]:
        cell = {"name": "rotrnn", "n_heads": 8}
        return (Recipe("small", "Small", "here", "D", {"model": {"cell": cell, "d_model": 16}}),)


def config(recipe: str | None = None, file: str | None = None, settings: tuple[str, ...] = (), **rest: Any) -> Any:
    return configuration(Recipes(), recipe, file, settings, rest.get("seed"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("1e-3", 0.001),
        ("true", True),
        ("null", None),
        ("lru", "lru"),
        ('"3"', "3"),
        ('{"name": "lru"}', {"name": "lru"}),
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
        ("1e999", "1e999"),
        ("", ""),
    ],
)
def test_a_value_is_json_where_it_is_json_and_text_elsewhere_never_a_number_that_is_not_finite(
    text: str, value: object
) -> None:
    assert parsed(text) == value
    assert type(parsed(text)) is type(value)


def test_the_later_wins_recipe_then_file_then_settings_then_seed(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"model": {"d_model": 32}, "training": {"steps": 9, "seed": 1}}))
    assert config("small", str(file), ("training.steps=5", "training.seed=2"), seed=3) == {
        "model": {"cell": {"name": "rotrnn", "n_heads": 8}, "d_model": 32},
        "training": {"steps": 5, "seed": 3},
    }


def test_another_cell_leaves_the_options_of_the_old_one_behind() -> None:
    below = {"cell": {"name": "rotrnn", "n_heads": 8}}
    assert laid_over(below, {"cell": {"name": "lru"}}) == {"cell": {"name": "lru"}}
    assert laid_over(below, {"cell": {"n_heads": 4}}) == {"cell": {"name": "rotrnn", "n_heads": 4}}


def test_an_option_of_a_cell_given_by_its_name_opens_the_name_into_an_object() -> None:
    by_name = set_field({}, "model.cell", "lru")
    assert set_field(by_name, "model.cell.normaliser", "tied") == {
        "model": {"cell": {"name": "lru", "normaliser": "tied"}}
    }


def test_setting_a_field_changes_no_configuration_that_is_in_use() -> None:
    recipe = {"model": {"d_model": 16}}
    set_field(recipe, "model.d_model", 32)
    assert recipe == {"model": {"d_model": 16}}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("model.n_layers=[1,2,4]", [1, 2, 4]),
        ("model.n_layers=1,2,4", [1, 2, 4]),
        ("model.cell=[lru, rotrnn]", ["lru", "rotrnn"]),
        ('model.cell=[{"name":"lru","normaliser":"tied"},"rotrnn"]', [{"name": "lru", "normaliser": "tied"}, "rotrnn"]),
        ("training.learning_rate=1e-3", [0.001]),
    ],
)
def test_a_grid_takes_a_json_list_or_plain_words_with_commas(text: str, values: list[object]) -> None:
    assert grid([text], None) == {text.split("=")[0]: values}


@pytest.mark.parametrize(("text", "numbers"), [("0", [0]), ("0-2", [0, 1, 2]), ("5,0-1,7", [5, 0, 1, 7])])
def test_seeds_are_numbers_and_ranges(text: str, numbers: list[int]) -> None:
    assert whole_numbers(text) == numbers
    assert grid([], text) == {"training.seed": numbers}


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "1.5", "0-99999999999", "1,,2"])
def test_seeds_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        whole_numbers(text)


@pytest.mark.parametrize("setting", ["", "x", "=1", " =1", "a..b=1", ".a=1", "a.=1"])
def test_a_setting_without_a_field_or_a_value_is_refused(setting: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not FIELD=VALUE"):
        config(settings=(setting,))


@pytest.mark.parametrize("axes", [["a=[]"], ["a="], ["a=1", "a=2"], ["a"], ['a=[{"x": 1}'], ["training.seed=1"]])
def test_a_grid_without_values_or_with_a_field_twice_is_refused(axes: list[str]) -> None:
    with pytest.raises(typer.BadParameter):
        grid(axes, "0-1" if axes[0].startswith("training") else None)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"{", "is not JSON"), (b"[1]", "holds list"), (b"\xff\xfe", "not UTF-8"), (None, "No such file")],
)
def test_a_file_that_is_no_configuration_is_refused_with_the_reason(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    file = tmp_path / "config.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(typer.BadParameter, match=said):
        config(file=str(file))


def test_an_unknown_recipe_is_refused_with_the_known_ones() -> None:
    with pytest.raises(typer.BadParameter, match="there are small"):
        config("smal")
