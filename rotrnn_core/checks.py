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
    for name, hint in field_types(kind).items():
        if not dataclasses.is_dataclass(hint):
            checked = check_scalar(hint, getattr(config, name), f"{config.path}.{name}")
            object.__setattr__(config, name, checked)


def check_scalar(hint: Any, value: object, where: str) -> Any:
    """The value of one field if its type is right; a whole number becomes a float where a float belongs.

    Raises:
        ConfigError: A wrong type, a choice that does not exist, or a number that is not finite.
    """
    origin = typing.get_origin(hint)
    if origin is Literal:
        choices = typing.get_args(hint)
        require(value in choices, where, value, f"use one of {', '.join(map(str, choices))}")
        return value
    if origin in (types.UnionType, typing.Union):
        if value is None:
            return None
        hint = next(arm for arm in typing.get_args(hint) if arm is not type(None))
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
