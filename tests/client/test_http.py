"""When is a request sent again, and what does a caller read when it fails?"""

import json
from collections.abc import Callable

import httpx2
import pytest

from client.api import RotBench
from client.connection import Connection
from client.errors import APIUnreachable, RotBenchError
from client.http import Transport

Handler = Callable[[httpx2.Request], httpx2.Response]
RUN = {
    "id": "r", "name": None, "sweep_id": None, "status": "queued", "failure_class": None, "reason": None, "config": {},
    "config_hash": "h", "cell": "rotrnn", "task": "t", "depth": 1, "seed": 0, "step": 0, "total_steps": 1, "attempt": 0,
    "priority": "normal", "created_at": "2030-01-01T00:00:00Z", "queued_at": None, "started_at": None,
    "finished_at": None, "parameter_count": None, "device": None, "divergence": None, "seconds_left": None,
    "latest": {},
}  # fmt: skip


def client_over(handler: Handler, token: str | None = "secret", waits: list[float] | None = None) -> RotBench:
    """A client whose network is a function."""
    waited = [] if waits is None else waits
    connection = Connection("http://api.test", token, "argument", "argument")
    return RotBench(transport=Transport(connection, transport=httpx2.MockTransport(handler), pause=waited.append))


class Server:
    """Answers in turn; an exception in the list is raised in place of an answer."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_a_get_is_sent_again_after_a_lost_connection_with_growing_pauses() -> None:
    waits: list[float] = []
    lost = [httpx2.ReadError("reset"), httpx2.ReadTimeout("late"), httpx2.ConnectError("refused")]
    server = Server(*lost, httpx2.Response(200, json=RUN))
    assert client_over(server, waits=waits).run("r").id == "r"
    assert len(waits) == 3
    assert waits[0] < waits[1] < waits[2] < 2


def test_a_submit_is_sent_again_with_the_same_key() -> None:
    server = Server(httpx2.ReadError("reset"), httpx2.Response(503), httpx2.Response(202, json=RUN))
    client_over(server).submit({})
    keys = {request.headers["Idempotency-Key"] for request in server.requests}
    assert len(server.requests) == 3
    assert len(keys) == 1


def test_two_submits_have_two_keys_and_a_given_key_is_used() -> None:
    server = Server(*(httpx2.Response(202, json=RUN) for _ in range(3)))
    client = client_over(server)
    client.submit({})
    client.submit({})
    client.submit({}, idempotency_key="mine")
    keys = [request.headers["Idempotency-Key"] for request in server.requests]
    assert len(set(keys)) == 3
    assert keys[2] == "mine"


def test_a_post_without_a_key_is_not_sent_again_once_it_may_have_arrived() -> None:
    server = Server(httpx2.ReadError("reset"), httpx2.Response(202, json=RUN))
    with pytest.raises(APIUnreachable):
        client_over(server).cancel("r")
    assert len(server.requests) == 1


def test_a_post_that_never_left_is_sent_again() -> None:
    server = Server(httpx2.ConnectError("refused"), httpx2.Response(202, json=RUN))
    client_over(server).cancel("r")
    assert len(server.requests) == 2


def test_an_api_that_gives_no_answer_is_named_with_what_to_do() -> None:
    server = Server(*(httpx2.ConnectError("refused") for _ in range(4)))
    with pytest.raises(APIUnreachable) as told:
        client_over(server).run("r")
    assert told.value.url == "http://api.test"
    assert "no answer from http://api.test: refused" in str(told.value)
    assert told.value.remedy is not None


def test_a_problem_document_becomes_an_error_with_field_value_and_remedy() -> None:
    problem = {
        "type": "urn:rotbench:problem:bad-config", "title": "Unprocessable Content", "status": 422,
        "detail": "model.d_model is -3.", "field": "model.d_model", "value": -3, "remedy": "use a whole number",
    }  # fmt: skip
    answer = httpx2.Response(422, json=problem, headers={"content-type": "application/problem+json"})
    with pytest.raises(RotBenchError) as told:
        client_over(Server(answer)).submit({})
    error = told.value
    assert (error.status, error.field, error.value, error.remedy) == (422, "model.d_model", -3, "use a whole number")
    assert str(error) == "model.d_model is -3: use a whole number"


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.Response(502, html="<h1>Bad gateway</h1>"),
        httpx2.Response(404, text="no such page"),
        httpx2.Response(200, text="<html>a login page</html>"),
        httpx2.Response(500, json=["not", "a", "problem"]),
        httpx2.Response(500, text="{broken", headers={"content-type": "application/problem+json"}),
    ],
)
def test_an_answer_of_something_else_than_rotbench_is_told_as_such(answer: httpx2.Response) -> None:
    server = Server(answer, *(httpx2.Response(502, html="still") for _ in range(3)))
    with pytest.raises(RotBenchError, match="not as a RotBench API does"):
        client_over(server).run("r")


def test_without_a_token_the_error_says_where_one_goes() -> None:
    problem = httpx2.Response(401, json={"title": "Unauthorized", "status": 401, "detail": "no token"})
    with pytest.raises(RotBenchError, match="set ROTBENCH_TOKEN"):
        client_over(Server(problem), token=None).run("r")


def test_the_token_goes_along_and_ids_cannot_leave_their_place_in_the_path() -> None:
    server = Server(httpx2.Response(200, json=RUN))
    client_over(server).run("../../secret?x=1")
    request = server.requests[0]
    assert request.headers["Authorization"] == "Bearer secret"
    assert request.url.raw_path == b"/v1/runs/..%2F..%2Fsecret%3Fx%3D1"


def test_a_config_that_is_not_finite_reaches_the_api_as_words_that_it_can_refuse() -> None:
    server = Server(httpx2.Response(202, json=RUN))
    client_over(server).submit({"training": {"learning_rate": float("nan")}})
    assert json.loads(server.requests[0].content)["config"] == {"training": {"learning_rate": "NaN"}}


def test_filters_are_repeated_and_absent_ones_are_left_out() -> None:
    server = Server(httpx2.Response(200, json={"items": [], "next_cursor": None}))
    client_over(server).run_page(status=["running", "queued"], depth=2)
    assert server.requests[0].url.query == b"status=running&status=queued&depth=2"


def test_all_pages_are_read_one_after_the_other() -> None:
    pages = [{"items": [RUN], "next_cursor": "c1"}, {"items": [RUN, RUN], "next_cursor": None}]
    server = Server(*(httpx2.Response(200, json=page) for page in pages))
    assert len(list(client_over(server).runs(cell="rotrnn"))) == 3
    assert server.requests[1].url.query == b"cell=rotrnn&cursor=c1"


@pytest.mark.parametrize("url", ["foo", "ftp://host", "http://[::1", "//host"])
def test_an_address_that_is_none_is_refused_before_anything_is_sent(url: str) -> None:
    with pytest.raises(APIUnreachable, match="is not an address"):
        RotBench(url, "token")


def test_a_token_with_a_line_break_is_refused() -> None:
    with pytest.raises(RotBenchError, match="no token has"):
        RotBench("http://api.test", "one\ntwo")
