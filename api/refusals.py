"""What does the caller read when something is refused? Each kind of error, put into words and a remedy."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from api.problems import Refusal
from rotrnn_core.config import ConfigError
from store import errors

_LISTS = {"run": "GET /v1/runs lists the runs", "sweep": "GET /v1/sweeps lists the sweeps"}
_WHEN_LEGAL = {
    "cancelled": "only a run that is queued, running or paused can be cancelled",
    "paused": "only a run that is queued or running can be paused",
    "resumed": "only a run that is paused, failed or cancelled can be resumed",
    "deleted": "cancel the run first, or wait until it has ended",
}

_OF_FRAMEWORK: dict[int, tuple[str, str, str | None]] = {
    400: ("unreadable-body", "The body cannot be read.", "send JSON in UTF-8 with Content-Type: application/json"),
    404: ("not-found", "There is nothing at this path.", "see /docs for the paths there are"),
    405: (
        "method-not-allowed",
        "This path does not take that method.",
        "the Allow header and /docs name the methods that it takes",
    ),
}


def bad_config(error: ConfigError) -> Refusal:
    """A configuration or grid that cannot be run."""
    return Refusal(422, "bad-config", f"{error}.", field=error.field, value=error.value, remedy=error.remedy)


def not_found(error: errors.NotFound) -> Refusal:
    """An id that nothing has."""
    return Refusal(
        404,
        "not-found",
        f"There is no {error.what} {error.id}.",
        field=f"{error.what}_id",
        value=str(error.id),
        remedy=_LISTS.get(error.what, "check the id"),
    )


def illegal_move(error: errors.IllegalMove) -> Refusal:
    """A wish that the run's state does not allow."""
    remedy = _WHEN_LEGAL.get(error.wanted, "wait until the run is in another state")
    return Refusal(409, "illegal-move", _sentence(error), field="status", value=error.status.value, remedy=remedy)


def key_reused(error: errors.KeyReused) -> Refusal:
    """An idempotency key that stands for another body."""
    return Refusal(
        422,
        "idempotency-key-reused",
        _sentence(error),
        field="Idempotency-Key",
        value=error.key,
        remedy="use a new key for another body, or send the same body again",
    )


def key_in_flight(error: errors.KeyInFlight) -> Refusal:
    """A request sent again while its first is being answered."""
    return Refusal(
        409,
        "idempotency-key-in-flight",
        _sentence(error),
        field="Idempotency-Key",
        value=error.key,
        remedy="send the same request again in a second; it makes nothing twice",
        headers={"Retry-After": "1"},
    )


def bad_cursor(error: errors.BadCursor, field: str = "cursor") -> Refusal:
    """A cursor that no listing made."""
    return Refusal(
        422,
        "bad-cursor",
        "The cursor was not made by this listing.",
        field=field,
        value=error.cursor,
        remedy="use next_cursor of the page before, or leave it out to start at the beginning",
    )


def database_away() -> Refusal:
    """A database that does not answer, or not in time."""
    return Refusal(
        503,
        "database-away",
        "The database does not answer, or not in time.",
        remedy="try again in a few seconds; /readyz says when it is back",
        headers={"Retry-After": "5"},
    )


def of_framework(error: HTTPException) -> Refusal:
    """What routing and parsing refuse."""
    kind, detail, remedy = _OF_FRAMEWORK.get(error.status_code, ("refused", f"{error.detail}.", None))
    return Refusal(error.status_code, kind, detail, remedy=remedy, headers=error.headers)


def unexpected() -> Refusal:
    """A defect of the service."""
    remedy = "report it with the time of this answer"
    return Refusal(500, "defect", "The service failed; its log holds the reason.", remedy=remedy)


def bad_request(error: RequestValidationError) -> Refusal:
    """A request whose parts have the wrong names, types or ranges; the first is named, the others are counted."""
    found: Sequence[Mapping[str, Any]] = error.errors()
    first = found[0]
    field, value, remedy = _field(first["loc"]), first.get("input"), _remedy(first)
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if first["type"] == "missing":
        detail = f"{field} is missing: {remedy}"
    elif first["type"] == "json_invalid":
        field, value = "body", None
        detail = f"The body is not valid JSON: {remedy}"
    else:
        detail = f"{field} is wrong: {remedy}"
    others = f" ({len(found) - 1} more of the kind)" if len(found) > 1 else ""
    missing = first["type"] == "missing"
    return Refusal(
        422, "bad-request", f"{detail}{others}.", field=field, value=None if missing else value, remedy=remedy
    )


def _field(place: Sequence[str | int]) -> str:
    where, *names = place
    if where == "header":
        return "-".join(part.capitalize() for part in str(names[0]).split("-"))
    named = names if where == "body" else names[:1]
    return ".".join(str(name) for name in named) if named else str(where)


def _remedy(first: Mapping[str, Any]) -> str:
    match first["type"]:
        case "missing":
            return "give it a value"
        case "extra_forbidden":
            return "there is no such field; leave it out"
        case "json_invalid":
            return f"{first.get('ctx', {}).get('error', 'it breaks off')} at character {first['loc'][-1]}"
        case "model_attributes_type" | "dict_type":
            return "send a JSON object, with Content-Type: application/json"
        case "uuid_parsing" | "uuid_type":
            return "an id is a UUID, such as 0b9d5a0e-3f4e-4a5e-9d8e-2c1f4b6a7d10"
        case "string_pattern_mismatch":
            return "use printable characters only"
    text = str(first["msg"]).removeprefix("Value error, ")
    return text[:1].lower() + text[1:]


def _sentence(error: Exception) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."
