"""Does whoever follows a run hear each event once and in order, whatever becomes of the connection, until its end?"""

import itertools
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from client import APIUnreachable, Event, Progress, RotBench, RotBenchError
from client.connection import Connection
from client.following import follow
from client.http import Transport

CONFIG = {"model": {"d_model": 8, "d_state": 8, "cell": "lru"}, "training": {"steps": 20, "warmup_steps": 0}}


class Cutting(httpx2.BaseTransport):
    """A network that cuts each stream of events after so many bytes, the longer the later."""

    def __init__(self) -> None:
        self.network = httpx2.HTTPTransport()
        self.allowed = itertools.count(0, 97)
        self.heard: list[str] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = self.network.handle_request(request)
        self.heard.append(request.headers["Last-Event-ID"])
        return httpx2.Response(answer.status_code, headers=answer.headers, stream=self._cut(answer, next(self.allowed)))

    def _cut(self, answer: httpx2.Response, left: int) -> Any:
        class Stream(httpx2.SyncByteStream):
            def __iter__(self) -> Iterator[bytes]:
                remaining = left
                for piece in answer.stream:  # type: ignore[union-attr]
                    yield piece[:remaining]
                    remaining -= len(piece)
                    if remaining <= 0:
                        raise httpx2.ReadError("cut")

            def close(self) -> None:
                answer.close()

        return Stream()


def test_a_stream_that_is_cut_again_and_again_tells_each_event_once_and_in_order(fresh: Any) -> None:
    with fresh.client() as client:
        run_id = client.submit(CONFIG).id
        told: list[Event | Progress] = []
        cutting = Cutting()
        http = Transport(client.connection, transport=cutting)
        for each in follow(http, f"/v1/runs/{run_id}/events", pause=lambda _: None):
            if not told:
                fresh.train(run_id, metrics=[("train_loss", 20, 1.0)])
            told.append(each)
        http.close()
        assert [each for each in told if isinstance(each, Event)] == list(client.history(run_id))
        assert [each.kind for each in client.follow(run_id) if isinstance(each, Event)][-1] == "succeeded"
        assert Progress("succeeded", 20, 20) in told
        assert list(client.follow(run_id, after=client.history(run_id)[-1].id)) == [Progress("succeeded", 20, 20)]
    assert len(cutting.heard) > 3
    assert list(map(int, cutting.heard)) == sorted(map(int, cutting.heard))


def test_an_api_that_stays_away_is_an_error_and_a_refusal_one_at_once(fresh: Any) -> None:
    clock = itertools.count()
    pauses: list[float] = []

    def nobody(_: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("nobody")

    http = Transport(
        Connection("http://127.0.0.1:1", "token", "argument", "argument"), transport=httpx2.MockTransport(nobody)
    )
    with pytest.raises(APIUnreachable):
        list(follow(http, "/x", patience_s=20, pause=pauses.append, clock=lambda: float(next(clock))))
    assert pauses == sorted(pauses)
    assert 15 < len(pauses) < 25
    with fresh.client() as client, pytest.raises(RotBenchError, match="no run"):
        list(client.follow("00000000-0000-0000-0000-000000000000"))


def test_the_command_line_tells_what_happened_and_ends_as_the_run_did(seeded: Any) -> None:
    result = seeded.service.rotbench("watch", seeded.failed, "--events")
    with RotBench(seeded.service.url, seeded.service.client().connection.token) as client:
        words = [f"{event.kind}: {event.message}" for event in client.history(seeded.failed)]
    assert result.exit_code == 1
    assert [line.split(" ", 1)[1] for line in result.stderr.splitlines()] == words
    assert seeded.service.rotbench("watch", seeded.sweep_id, "--events").exit_code == 2
