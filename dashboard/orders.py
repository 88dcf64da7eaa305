"""What does the form ask for? Texts of its fields become a configuration and a grid, as the API takes them."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from client import CellModel

MOST_VALUES = 1000


@dataclass(frozen=True)
class Order:
    """What is wanted: settings laid over a recipe, and the fields that have several values each.

    match names what all cells of a sweep have in common in place of d_state: parameters or flops.
    """

    recipe: str | None
    base: dict[str, Any]
    settings: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)
    name: str | None = None
    priority: str | None = None
    reuse: bool = False
    match: str | None = None

    @property
    def config(self) -> dict[str, Any]:
        """The recipe with the settings laid over it, without the fields that the grid sets."""
        config = self.base
        for name, value in self.settings.items():
            config = placed(config, name, value)
        for name in self.grid:
            config = _without(config, name.split("."))
        return config


def order(
    recipe: str | None,
    base: Mapping[str, Any],
    texts: Mapping[str, str],
    cells: Sequence[dict[str, Any]] = (),
    **more: Any,
) -> Order:
    """The order that the form's fields describe.

    Args:
        recipe: The recipe's name; None begins with the defaults.
        base: Its configuration.
        texts: Dotted field to what stands in it: one value is a setting, several with commas are an axis of the grid;
            an empty text leaves the field as the recipe has it.
        cells: Cells in place of the recipe's; several are an axis.
        more: name, priority, reuse and match, as in Order.
    """
    settings: dict[str, Any] = {}
    grid: dict[str, list[Any]] = {}
    if len(cells) == 1:
        settings["model.cell"] = cells[0]
    elif cells:
        grid["model.cell"] = list(cells)
    for name, text in texts.items():
        values = values_of(text)
        if len(values) == 1:
            settings[name] = values[0]
        elif values:
            grid[name] = values
    return Order(recipe, dict(base), settings, grid, **more)


def values_of(text: str) -> list[Any]:
    """The values of a field: JSON or plain words between commas; 0-4 is five whole numbers."""
    found: list[Any] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        span = re.fullmatch(r"(\d{1,9})\s*-\s*(\d{1,9})", part)
        if span and int(span[2]) - int(span[1]) in range(MOST_VALUES):
            found += range(int(span[1]), int(span[2]) + 1)
        else:
            found.append(value_of(part))
    return found


def value_of(text: str) -> Any:
    """One value: JSON where it is JSON, else the text itself, which the API may refuse."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except ValueError:
        return text


def cells_of(models: Sequence[CellModel], texts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every combination of the options of the chosen cells; an option without a text has its default.

    Args:
        models: The chosen cells.
        texts: "<cell>.<option>" to its text.
    """
    found: list[dict[str, Any]] = []
    for model in models:
        given = {option.name: values_of(texts.get(f"{model.name}.{option.name}", "")) for option in model.options}
        axes = {name: values for name, values in given.items() if values}
        found += [
            {"name": model.name, **dict(zip(axes, chosen, strict=True))} for chosen in itertools.product(*axes.values())
        ]
    return found


def leaves(config: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Every field of a configuration by its dotted name, the cell apart."""
    for name, value in config.items():
        path = f"{before}{name}"
        if isinstance(value, Mapping):
            if path != "model.cell":
                yield from leaves(value, f"{path}.")
        else:
            yield path, value


def placed(config: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    """The configuration with one dotted field changed."""
    first, _, rest = name.partition(".")
    below = config.get(first)
    inner = placed(below if isinstance(below, Mapping) else {}, rest, value) if rest else value
    return {**config, first: inner}


def _without(config: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    below = config.get(path[0])
    rest = {name: value for name, value in config.items() if name != path[0]}
    if len(path) > 1 and isinstance(below, Mapping):
        return rest | {path[0]: _without(below, path[1:])}
    return rest


def _no_constant(text: str) -> NoReturn:
    raise ValueError(text)
