"""What did a run's trainers write? Their lines, attempt by attempt."""

import re
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from store.errors import BadCursor
from store.tables import LogRow

_CURSOR = re.compile(r"([0-9]{1,9}):(-?[0-9]{1,18})")


@dataclass(frozen=True)
class LogPage:
    """Lines in order, and the cursor after the last of them; it stays as it was when there are none."""

    items: list[LogRow]
    next_cursor: str | None


def read(session: Session, run_id: UUID, *, after: str | None = None, limit: int = 1000) -> LogPage:
    """The run's lines after the cursor "attempt:sequence", oldest first.

    Raises:
        BadCursor: The cursor is not of that form.
    """
    wanted = select(LogRow).where(LogRow.run_id == run_id)
    if after is not None:
        place = _CURSOR.fullmatch(after)
        if place is None:
            raise BadCursor(after)
        wanted = wanted.where(tuple_(LogRow.attempt, LogRow.sequence) > tuple_(int(place[1]), int(place[2])))
    items = list(session.scalars(wanted.order_by(LogRow.attempt, LogRow.sequence).limit(limit)))
    return LogPage(items, f"{items[-1].attempt}:{items[-1].sequence}" if items else after)


def tail(session: Session, run_id: UUID, limit: int = 200) -> list[LogRow]:
    """The run's last lines, oldest first."""
    newest = select(LogRow).where(LogRow.run_id == run_id).order_by(LogRow.attempt.desc(), LogRow.sequence.desc())
    return list(session.scalars(newest.limit(limit)))[::-1]
