"""Does the caller have this answer already? An entity tag for answers about runs that have ended, and 304 for it."""

import hashlib
from collections.abc import Sequence
from typing import Any

from fastapi import Request, Response

from store.status import TERMINAL
from store.tables import RunRow

UNCHANGED: dict[int | str, dict[str, Any]] = {
    304: {"description": "As the If-None-Match header says, the caller has this answer."}
}


def unchanged(request: Request, response: Response, rows: Sequence[RunRow]) -> Response | None:
    """Tag the answer about the runs, if all of them have ended; 304 when the caller named its tag.

    A run that has ended changes only by a resume, which makes a new attempt.
    """
    ended = sorted((str(row.id), row.attempt, str(row.finished_at)) for row in rows if row.status in TERMINAL)
    if len(ended) < len(rows):
        return None
    said = f"{request.app.version} {request.url.path}?{request.url.query} {ended}"
    tag = f'"{hashlib.sha256(said.encode()).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    response.headers.update(headers)
    asked = request.headers.get("if-none-match", "")
    known = {part.strip().removeprefix("W/") for part in asked.split(",")}
    return Response(status_code=304, headers=headers) if tag in known else None
