"""How is a field of a configuration checked? By its annotation, with an error that a person can act on; no torch."""

import dataclasses
import functools
import math
import types
import typing
from typing import Any, Literal


class ConfigError(ValueError):
    """A configuration that cannot be run.

    Args:
        field: Dotted path of the field, such as "model.d_state".
        value: What was given.
        remedy: What to do, as a sentence without a final full stop.
    """

    def __init__(self, field: str, value: object, remedy: str) -> None:
        self.field = field
        self.value = value
        self.remedy = remedy
        super().__init__(f"{field} is {_shown(value)}: {remedy}")


def _shown(value: object, longest: int = 80) -> str:
    huge = isinstance(value, int) and value.bit_length() > 1000
    text = f"a whole number of {typing.cast(int, value).bit_length()} bits" if huge else repr(value)
    return text if len(text) <= longest else text[: longest - 3] + "..."


def require(holds: bool, field: str, value: object, remedy: str) -> None:
    """Raise ConfigError unless the condition holds."""
    if not holds:
        raise ConfigError(field, value, remedy)


@functools.cache
def field_types(kind: type) -> dict[str, Any]:
    """Name to type of every field of a configuration class, in order."""
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def check_scalars(config: Any) -> None:
    """Check the type of every field that is not itself a config; whole numbers become floats where floats belong.

    Raises:
        ConfigError: A wrong type, a choice that does not exist, or a number that is not finite.
    """
    kind: type = type(config)
    for name in _scalars(kind):
        value = getattr(config, name)
        checked = check_scalar(kind, name, value)
        if checked is not value:
            object.__setattr__(config, name, checked)


Demand = tuple[tuple[Any, ...], bool, Any]
"""What an annotation asks for: one of these choices, or (None where that is allowed or) a value of this type."""


@functools.cache
def _scalars(kind: Any) -> dict[str, tuple[Demand, str]]:
    """Name to demand and dotted path of every field that is not itself a config."""
    types_of = field_types(kind).items()
    return {
        name: (_demand(hint), f"{kind.path}.{name}") for name, hint in types_of if not dataclasses.is_dataclass(hint)
    }


def _demand(hint: Any) -> Demand:
    origin = typing.get_origin(hint)
    if origin is Literal:
        return typing.get_args(hint), False, None
    if origin in (types.UnionType, typing.Union):
        return (), True, next(arm for arm in typing.get_args(hint) if arm is not type(None))
    return (), False, hint


def check_scalar(kind: type, name: str, value: object) -> Any:
    """The value of one field if its type is right; a whole number becomes a float where a float belongs.

    Raises:
        ConfigError: A wrong type, a choice that does not exist, or a number that is not finite.
    """
    (choices, optional, hint), where = _scalars(kind)[name]
    if choices:
        if value not in choices:
            require(False, where, value, f"use one of {', '.join(map(str, choices))}")
        return value
    if optional and value is None:
        return None
    if hint is bool:
        require(isinstance(value, bool), where, value, "use true or false")
        return value
    if hint is int:
        require(isinstance(value, int) and not isinstance(value, bool), where, value, "use a whole number")
        return value
    if hint is float:
        require(isinstance(value, (int, float)) and not isinstance(value, bool), where, value, "use a number")
        return _finite(typing.cast(int | float, value), where)
    require(isinstance(value, str), where, value, "use text")
    return value


def _finite(value: int | float, where: str) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    require(math.isfinite(number), where, value, "use a finite number")
    return number
