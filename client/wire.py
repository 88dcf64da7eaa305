"""How does JSON become typed results, and back? Non-finite floats travel as the strings NaN, Infinity, -Infinity."""

import dataclasses
import functools
import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from client.errors import RotBenchError

T = TypeVar("T")
Reader = Callable[[Any], Any]


def number(value: object) -> float:
    """A float from the wire: a JSON number, one of the three strings, or null for not a number.

    Raises:
        ValueError: Anything else.
    """
    if value is None:
        return math.nan
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    raise ValueError(f"{value!r} is not a number")


def read(wanted: type[T], payload: object) -> T:
    """Build a result from decoded JSON; fields that this client does not know are left out.

    Raises:
        RotBenchError: The answer has another form than this client expects.
    """
    try:
        return typing.cast(T, _reader(typing.cast(Any, wanted))(payload))
    except (KeyError, TypeError, ValueError) as error:
        raise RotBenchError(
            f"the API's answer is not a {wanted.__name__}: {error}",
            title="Unexpected answer",
            remedy="check that the client and the API are of the same version",
        ) from error


def items(wanted: type[T], answer: Any, name: str = "items") -> tuple[T, ...]:
    """The results of a list that stands under a name in the answer."""
    listed = answer.get(name) if isinstance(answer, dict) else None
    return tuple(read(wanted, item) for item in (listed if isinstance(listed, list) else []))


def plain(value: Any) -> Any:
    """A result as plain JSON values, non-finite floats as strings; `read` gives the same result back."""
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.isoformat() if isinstance(value, datetime) else value


def to_json(value: Any) -> str:
    """Strict JSON, indented, in the order of the fields."""
    return json.dumps(plain(value), indent=2, allow_nan=False, ensure_ascii=False)


@functools.cache
def _reader(hint: Any) -> Reader:
    if hint is float:
        return number
    if hint is datetime:
        return datetime.fromisoformat
    if dataclasses.is_dataclass(hint):
        return _dataclass_reader(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        inner = _reader(next(arm for arm in arguments if arm is not type(None)))
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        item = _reader(arguments[0])
        return lambda values: tuple(map(item, values))
    if origin is dict and arguments[1] is not Any:
        item = _reader(arguments[1])
        return lambda values: {key: item(value) for key, value in values.items()}
    if hint in (int, str, bool):
        return functools.partial(_exactly, hint)
    return lambda value: value


def _exactly(wanted: type, value: object) -> object:
    if type(value) is not wanted:
        raise ValueError(f"{value!r} is not a {wanted.__name__}")
    return value


def _dataclass_reader(wanted: Any) -> Reader:
    hints = typing.get_type_hints(wanted)
    fields = {f.name: _reader(hints[f.name]) for f in dataclasses.fields(wanted)}
    required = {
        f.name
        for f in dataclasses.fields(wanted)
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    }

    def build(payload: Any) -> Any:
        if not isinstance(payload, Mapping):
            raise ValueError(f"{payload!r} is not an object")
        missing = required - payload.keys()
        if missing:
            raise ValueError(f"{', '.join(sorted(missing))} missing")
        values = {}
        for name, reader in fields.items():
            if name in payload:
                try:
                    values[name] = reader(payload[name])
                except (TypeError, ValueError) as error:
                    raise ValueError(f"{name}: {error}") from error
        return wanted(**values)

    return build
