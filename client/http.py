"""How is one request made? JSON over HTTP with a token, retries where they are safe, problems as errors."""

import hashlib
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx2

from client.connection import Connection
from client.errors import APIUnreachable, RotBenchError
from client.wire import plain

Query = Mapping[str, Any]
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
AWAY = frozenset({502, 503, 504})
SILENCE_S = 60.0
"""A stream says something every 15 s; one that is silent for longer than this is dead."""


class Sink(Protocol):
    """Where bytes go."""

    def write(self, data: bytes, /) -> object: ...


class Hashed:
    """A sink that sums up what goes through it."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._digest = hashlib.sha256()

    def write(self, data: bytes, /) -> None:
        """Pass the bytes on."""
        self._digest.update(data)
        self._sink.write(data)

    @property
    def sha256(self) -> str:
        """Of all bytes so far."""
        return self._digest.hexdigest()


class Transport:
    """Speaks with one API; safe to share between threads.

    A request is sent again when it cannot do harm: it only reads, it carries an idempotency key, or it never left.

    Args:
        connection: Address and token.
        timeout_s: Longest wait for one answer.
        retries: How often a request is sent again.
        pause: Called with the seconds to wait before the next try.
        transport: In place of the network.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        timeout_s: float = 30.0,
        retries: int = 3,
        pause: Callable[[float], object] = time.sleep,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self.connection = connection
        self._retries = retries
        self._pause = pause
        headers = {"Accept": "application/json"}
        if connection.token:
            if not (connection.token.isascii() and connection.token.isprintable()):
                raise RotBenchError(
                    f"the token from {connection.token_source} holds characters that no token has",
                    remedy="copy it again, without line breaks",
                )
            headers["Authorization"] = f"Bearer {connection.token}"
        try:
            if urlsplit(connection.url).scheme not in ("http", "https"):
                raise ValueError("it does not begin with http:// or https://")
            self._client = httpx2.Client(
                base_url=connection.url,
                headers=headers,
                timeout=httpx2.Timeout(timeout_s, connect=min(5.0, timeout_s)),
                trust_env=urlsplit(connection.url).hostname not in LOOPBACK,
                transport=transport,
            )
            self._client.build_request("GET", "/")
        except (httpx2.InvalidURL, UnicodeError, ValueError) as error:
            raise APIUnreachable(
                f"{connection.url!r} is not an address: {error}",
                url=connection.url,
                remedy="give one such as http://127.0.0.1:8000",
            ) from error

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def get(self, path: str, query: Query | None = None) -> Any:
        """The decoded answer of a GET."""
        return self._send("GET", path, query=query)

    def download(self, path: str, query: Query, sink: Sink) -> Mapping[str, str]:
        """Write the bytes of a GET into the sink as they come; the answer's headers.

        Raises:
            APIUnreachable: There is no answer, or it broke off: what the sink holds is not all.
        """
        try:
            with self._client.stream("GET", path, params=_given(query), headers={"Accept": "*/*"}) as answer:
                if not answer.is_success:
                    answer.read()
                    self._decoded(answer)
                for piece in answer.iter_bytes():
                    sink.write(piece)
                return dict(answer.headers)
        except httpx2.TransportError as error:
            raise self._unreachable(error) from error

    def lines(self, path: str, headers: Mapping[str, str]) -> Iterator[str]:
        """The lines of a GET as they come, without their ends.

        Raises:
            APIUnreachable: There is no answer, it broke off, or it was silent for too long.
        """
        waits = httpx2.Timeout(self._client.timeout.connect, read=SILENCE_S)
        try:
            with self._client.stream("GET", path, headers=dict(headers), timeout=waits) as answer:
                if not answer.is_success:
                    answer.read()
                    self._decoded(answer)
                yield from answer.iter_lines()
        except httpx2.TransportError as error:
            raise self._unreachable(error) from error

    def post(self, path: str, body: object = None, *, key: str | None = None) -> Any:
        """The decoded answer of a POST; with an idempotency key it is safe to send again."""
        return self._send("POST", path, body=body, key=key)

    def delete(self, path: str) -> None:
        """Delete what stands at the path."""
        self._send("DELETE", path)

    def _send(
        self, method: str, path: str, *, query: Query | None = None, body: object = None, key: str | None = None
    ) -> Any:
        repeatable = method == "GET" or key is not None
        request = self._client.build_request(
            method,
            path,
            params=_given(query or {}),
            json=plain(body),
            headers={"Idempotency-Key": key} if key else None,
        )
        for left in range(self._retries, -1, -1):
            wait_s = 0.25 * 2 ** (self._retries - left) * random.uniform(0.75, 1.25)
            try:
                answer = self._client.send(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                if not left:
                    raise self._unreachable(error) from error
            except httpx2.TransportError as error:
                if not (left and repeatable):
                    raise self._unreachable(error) from error
            else:
                if not (left and repeatable and _says_later(answer)):
                    return self._decoded(answer)
            self._pause(wait_s)
        raise AssertionError("the last try returns or raises")

    def _unreachable(self, error: Exception) -> APIUnreachable:
        url, source = self.connection.url, self.connection.url_source
        named = "" if source == "argument" else f" (from {source})"
        return APIUnreachable(
            f"no answer from {url}{named}: {error or type(error).__name__}",
            url=url,
            remedy="start the stack with `rotbench up`, or correct the address"
            if urlsplit(url).hostname in LOOPBACK
            else "check the address, the network and that the API runs",
        )

    def _decoded(self, answer: httpx2.Response) -> Any:
        if answer.is_success:
            if answer.status_code == 204 or not answer.content:
                return None
            try:
                return answer.json()
            except ValueError as error:
                raise self._foreign(answer) from error
        if "json" not in answer.headers.get("content-type", ""):
            raise self._foreign(answer)
        try:
            problem = answer.json()
        except ValueError as error:
            raise self._foreign(answer) from error
        if not isinstance(problem, dict):
            raise self._foreign(answer)
        refused = RotBenchError.from_problem(answer.status_code, problem)
        if answer.status_code == 401 and self.connection.token is None:
            refused = RotBenchError(
                f"{self.connection.url} asks for a token and none is known here",
                status=401,
                title=refused.title,
                remedy="set ROTBENCH_TOKEN",
            )
        raise refused

    def _foreign(self, answer: httpx2.Response) -> RotBenchError:
        return RotBenchError(
            f"{self.connection.url} answered {answer.status_code} {answer.reason_phrase}, not as a RotBench API does",
            status=answer.status_code,
            title="Unexpected answer",
            remedy="check the address and what stands before the API",
        )


def _says_later(answer: httpx2.Response) -> bool:
    """Whether the same request may well be answered in a while: the service is away, or still answers its first."""
    return answer.status_code in AWAY or (answer.status_code == 409 and "Retry-After" in answer.headers)


def _given(query: Query) -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    for name, value in query.items():
        if isinstance(value, Sequence) and not isinstance(value, str):
            pairs += [(name, item) for item in value]
        elif isinstance(value, bool):
            pairs.append((name, "true" if value else "false"))
        elif value is not None:
            pairs.append((name, value))
    return pairs
