"""How long may a request body be? Middleware that refuses a longer one, with or without a Content-Length."""

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.problems import Refusal

_DRAINED_BYTES = 100_000_000
_DRAINED_S = 10.0


class BodyLimit:
    """Answer 413 to a body of more than max_bytes.

    A body that says its length is refused before any of it is handled; a body without a length is counted as it
    comes. What is left of it is read and thrown away first, within bounds, since many clients look for an answer only
    after they have sent everything.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        said = Headers(scope=scope).get("content-length", "")
        if said.isdecimal() and int(said[:20]) > self._max_bytes:
            await _drain(receive)
            await self._refusal(int(said[:20])).response()(scope, receive, send)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                if seen > self._max_bytes:
                    if message.get("more_body", False):
                        await _drain(receive)
                    raise self._refusal(seen)
            return message

        await self._app(scope, counted, send)

    def _refusal(self, size: int) -> Refusal:
        return Refusal(
            413,
            "body-too-large",
            f"The body is larger than {self._max_bytes} bytes.",
            field="body",
            value=f"{size} bytes or more",
            remedy=f"send at most {self._max_bytes} bytes; a large sweep is short as a grid",
        )


async def _drain(receive: Receive) -> None:
    seen = 0
    with anyio.move_on_after(_DRAINED_S):
        while seen <= _DRAINED_BYTES:
            message = await receive()
            seen += len(message.get("body", b""))
            if message["type"] != "http.request" or not message.get("more_body", False):
                return
