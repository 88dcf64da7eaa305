"""What does the command line want trained? Recipe, file, settings and grid become one configuration."""

import dataclasses
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from client.api import RotBench

RecipeOption = Annotated[
    str | None, typer.Option("--recipe", metavar="NAME", help="Begin with a recipe; `rotbench models` lists them.")
]
ConfigOption = Annotated[
    str | None, typer.Option("--config", metavar="FILE.json", help="Lay a JSON file over it; - reads stdin.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="Set one field, such as model.cell=lru; JSON or plain text."),
]
GridOption = Annotated[
    list[str] | None,
    typer.Option("--grid", metavar="FIELD=[..]", help="Values for one field, such as model.n_layers=[1,2,4]."),
]
NameOption = Annotated[str | None, typer.Option("--name", metavar="TEXT", help="A name for people.")]
PriorityOption = Annotated[
    str | None, typer.Option("--priority", metavar="low|normal|high", help="Place in the queue.")
]


@dataclass(frozen=True)
class SweepFile:
    """What a sweep file says: a recipe, settings over it, and the grid; options of the command line win."""

    name: str | None = None
    recipe: str | None = None
    settings: tuple[str, ...] = ()
    grid: Mapping[str, list[Any]] = dataclasses.field(default_factory=dict)


def sweep_file(name: str) -> SweepFile:
    """Read a sweep file.

    Raises:
        typer.BadParameter: It cannot be read, is not a JSON object, or holds what a sweep file does not have.
    """
    given = _file(name, "FILE.json")
    unknown = given.keys() - {"name", "source", "recipe", "set", "grid"}
    settings, axes = given.get("set", {}), given.get("grid", {})
    if unknown or not (isinstance(settings, dict) and isinstance(axes, dict)):
        what = f"holds {', '.join(sorted(unknown))}, but" if unknown else "is not a sweep:"
        _refuse(f"{name} {what} a sweep file has name, source, recipe, set and grid", "FILE.json")
    if not all(isinstance(values, list) and values for values in axes.values()):
        _refuse(f"each field of the grid of {name} needs a list of values", "FILE.json")
    set_here = tuple(f"{key}={json.dumps(value)}" for key, value in settings.items())
    return SweepFile(given.get("name"), given.get("recipe"), set_here, axes)


def configuration(
    client: RotBench, recipe: str | None, file: str | None, settings: Sequence[str], seed: int | None
) -> dict[str, Any]:
    """The configuration: the recipe, then the file, then each setting, then the seed; the later wins.

    Raises:
        typer.BadParameter: An unknown recipe, a file that is not a JSON object, a setting without a field or value.
    """
    config: dict[str, Any] = {}
    if recipe is not None:
        config = _recipe(client, recipe)
    if file is not None:
        config = laid_over(config, _file(file, "--config"))
    for setting in settings:
        field, value = _split(setting, "--set")
        config = set_field(config, field, parsed(value))
    return config if seed is None else set_field(config, "training.seed", seed)


def grid(wanted: Sequence[str], seeds: str | None) -> dict[str, list[Any]]:
    """The grid of a sweep: each field with its values.

    Raises:
        typer.BadParameter: A field without values, or given twice.
    """
    axes: dict[str, list[Any]] = {}
    for item in wanted:
        field, text = _split(item, "--grid")
        if field in axes:
            _refuse(f"{field} is given twice", "--grid")
        axes[field] = _values(text)
        if not axes[field]:
            _refuse(f"{field} has no values", "--grid")
    if seeds is not None:
        if "training.seed" in axes:
            _refuse("training.seed is in the grid already", "--seed")
        axes["training.seed"] = list(whole_numbers(seeds))
    return axes


def whole_numbers(text: str) -> list[int]:
    """Whole numbers from text such as 0,1,2 or 0-4.

    Raises:
        typer.BadParameter: It says something else.
    """
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            begin, end = int(first), int(last if dash else first)
        except ValueError:
            _refuse(f"{text!r} is not a list such as 0,1,2 or a range such as 0-4", "--seed")
        if end - begin >= 10_000:
            _refuse(f"{text!r} is more than 10,000 seeds", "--seed")
        numbers += range(begin, end + 1)
    return numbers


def parsed(text: str) -> Any:
    """A value from the command line: JSON where it is JSON, else the text itself."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except ValueError:
        return text
    return text if isinstance(value, float) and not math.isfinite(value) else value


def set_field(config: Mapping[str, Any], field: str, value: Any) -> dict[str, Any]:
    """The configuration with one dotted field set; a cell given by name alone opens into an object."""
    first, _, rest = field.partition(".")
    changed = dict(config)
    if not rest:
        changed[first] = value
        return changed
    below = changed.get(first)
    if isinstance(below, str):
        below = {"name": below}
    changed[first] = set_field(below if isinstance(below, Mapping) else {}, rest, value)
    return changed


def laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two configurations as one; the upper wins, and an object of another name replaces the lower one whole."""
    merged = dict(below)
    for name, value in above.items():
        old = merged.get(name)
        joins = isinstance(old, Mapping) and isinstance(value, Mapping) and value.get("name") in (None, old.get("name"))
        merged[name] = laid_over(old, value) if joins and isinstance(old, Mapping) else value
    return merged


def _recipe(client: RotBench, name: str) -> dict[str, Any]:
    recipes = {recipe.name: recipe.config for recipe in client.recipes()}
    if name not in recipes:
        _refuse(f"there is no recipe {name!r}; there are {', '.join(sorted(recipes)) or 'none'}", "--recipe")
    return recipes[name]


def _file(name: str, option: str) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        _refuse(f"{name} cannot be read: {reason}", option)
    try:
        value = json.loads(text)
    except ValueError as error:
        _refuse(f"{name} is not JSON: {error}", option)
    if not isinstance(value, dict):
        _refuse(f"{name} holds {type(value).__name__}, not an object of named fields", option)
    return value


def _split(text: str, option: str) -> tuple[str, str]:
    field, equals, value = text.partition("=")
    if not (field.strip() and equals) or ".." in f".{field.strip()}.":
        _refuse(f"{text!r} is not FIELD=VALUE", option)
    return field.strip(), value.strip()


def _values(text: str) -> list[Any]:
    value = parsed(text)
    if isinstance(value, list):
        return value
    if any(mark in text for mark in "{}\"'"):
        _refuse(f"{text!r} is not a JSON list", "--grid")
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    return [parsed(part.strip()) for part in inner.split(",") if part.strip()]


def _no_constant(text: str) -> NoReturn:
    raise ValueError(text)


def _refuse(message: str, option: str) -> NoReturn:
    raise typer.BadParameter(message, param_hint=option)
