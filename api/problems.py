"""What does an error look like on the wire? Problem documents (RFC 9457) that name field, value and remedy."""

import json
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"
_LONGEST_VALUE = 200


class Problem(BaseModel):
    """What went wrong, and what to do about it."""

    type: str = Field(description="Kind of problem, stable: urn:rotbench:problem:<kind>.")
    title: str = Field(description="The kind in words.")
    status: int = Field(description="HTTP status code, as in the answer's head.")
    detail: str = Field(description="This case in one sentence that a person can act on.")
    field: str | None = Field(None, description="Dotted path of what was wrong in the request, where there is one.")
    value: Any = Field(None, description="What was given there; long values are cut to text.")
    remedy: str | None = Field(None, description="What to do.")


class Refusal(HTTPException):
    """An error on its way to the caller; every problem document is made from one.

    Args:
        status: HTTP status code.
        kind: Stable kind, such as "bad-config".
        detail: This case in one sentence, without the remedy.
        field: Dotted path of what was wrong.
        value: What was given there.
        remedy: What to do, as a clause without a final full stop.
        headers: Further headers of the answer.
    """

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        field: str | None = None,
        value: object = None,
        remedy: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, detail, headers)
        self.kind = kind
        self.field = field
        self.value = value
        self.remedy = remedy

    def response(self) -> Response:
        """The problem document."""
        document: dict[str, Any] = {
            "type": f"urn:rotbench:problem:{self.kind}",
            "title": HTTPStatus(self.status_code).phrase,
            "status": self.status_code,
            "detail": shown(self.detail, 1000),
        }
        if self.field is not None:
            document |= {"field": shown(self.field), "value": wire_value(self.value)}
        if self.remedy is not None:
            document["remedy"] = self.remedy
        body = json.dumps(document, allow_nan=False)
        return Response(body, self.status_code, headers=self.headers, media_type=MEDIA_TYPE)


def shown(text: str, longest: int = _LONGEST_VALUE) -> str:
    """The text, cut to a length."""
    return text if len(text) <= longest else text[: longest - 3] + "..."


def wire_value(value: object) -> Any:
    """The value as it may stand in a document: NaN and infinities by name, what is long or odd as cut text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**53 else _digits(value)
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
    return shown(value if isinstance(value, str) else repr(value))


def _digits(value: int) -> str:
    """A large whole number in text; one with thousands of digits cannot be written out."""
    return shown(str(value)) if value.bit_length() < 4000 else f"a whole number of {value.bit_length()} bits"
