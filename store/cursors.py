"""How does a listing, newest first, know where its next page begins?"""

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, Protocol, TypeVar
from uuid import UUID

from store.errors import BadCursor

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Dated(Protocol):
    """A row of such a listing."""

    id: Any
    created_at: Any


Row = TypeVar("Row", bound=Dated)


@dataclass(frozen=True)
class Page(Generic[Row]):
    """A part of a listing, newest first, and the cursor of the next part."""

    items: list[Row]
    next_cursor: str | None


def cut(rows: list[Row], limit: int) -> Page[Row]:
    """The page of `limit` rows, out of rows read with one more than the limit."""
    items = rows[:limit]
    more = len(rows) > limit
    return Page(items, encode(items[-1].created_at, items[-1].id) if more else None)


def encode(at: datetime, id: UUID) -> str:
    """The opaque text that stands for the last row of a page."""
    microseconds = (at - _EPOCH) // _MICROSECOND
    return base64.urlsafe_b64encode(microseconds.to_bytes(8, "big", signed=True) + id.bytes).decode()


def decode(cursor: str) -> tuple[datetime, UUID]:
    """The row that `encode` was given.

    Raises:
        BadCursor: The text was not made by `encode`.
    """
    try:
        raw = base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True)
        if len(raw) != 24:
            raise BadCursor(cursor)
        at = _EPOCH + int.from_bytes(raw[:8], "big", signed=True) * _MICROSECOND
    except (UnicodeEncodeError, binascii.Error, OverflowError) as error:
        raise BadCursor(cursor) from error
    return at, UUID(bytes=raw[8:])
