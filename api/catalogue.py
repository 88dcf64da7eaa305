"""Which tasks, cells and recipes can a run name? Read off the configuration's own lists."""

import dataclasses
import itertools
import typing
from collections.abc import Iterable
from typing import Any, Literal

from rotrnn_core.cells import CELLS, CellConfig
from rotrnn_core.checks import ConfigError, field_types


@dataclasses.dataclass(frozen=True)
class Option:
    """One field of a cell's configuration."""

    name: str
    type: str
    default: Any
    choices: tuple[Any, ...] | None


def options(cell: type[CellConfig]) -> tuple[Option, ...]:
    """What can be chosen of a cell beside its name."""
    kind: type = cell
    hints = field_types(kind)
    return tuple(
        Option(field.name, _type_name(hints[field.name]), field.default, _choices(hints[field.name]))
        for field in dataclasses.fields(cell)
        if field.name != "name"
    )


def labels(cell: type[CellConfig]) -> tuple[str, ...]:
    """Every label that a cell's variants can have, the default first."""
    chosen = {o.name: o.choices or (False, True) for o in options(cell) if o.choices or o.type == "true or false"}
    variants = (dict(zip(chosen, values, strict=True)) for values in itertools.product(*chosen.values()))
    default: Any = cell
    return tuple(dict.fromkeys([str(default().label), *filter(None, (_label(cell, variant) for variant in variants))]))


def _label(cell: type[CellConfig], variant: dict[str, Any]) -> str | None:
    made: Any = cell
    try:
        return str(made(**variant).label)
    except ConfigError:
        return None


def _choices(hint: Any) -> tuple[Any, ...] | None:
    return typing.get_args(hint) if typing.get_origin(hint) is Literal else None


def _type_name(hint: Any) -> str:
    if typing.get_origin(hint) is Literal:
        return "choice"
    names: dict[Any, str] = {int: "whole number", float: "number", bool: "true or false", str: "text"}
    return names.get(hint, str(hint))


def _all_labels() -> Iterable[str]:
    for cell in CELLS.values():
        yield from labels(cell)


LABELS: tuple[str, ...] = tuple(_all_labels())
"""Every cell label there is."""
