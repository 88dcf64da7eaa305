"""What does a page get while the API comes and goes? Fresh answers, kept answers, and since when it is away."""

import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from client import APIUnreachable, RotBench, RotBenchError
from dashboard import connection
from dashboard.connection import Line

AWAY = APIUnreachable("no answer", url="http://nowhere", remedy="start it")


class Telephone:
    """Stands in for a client: counts how often it was made and asked, and can be away."""

    def __init__(self) -> None:
        self.made = self.asked = 0
        self.problem: RotBenchError | None = None

    def connect(self) -> RotBench:
        self.made += 1
        return cast(RotBench, self)

    def number(self, _: Any) -> int:
        self.asked += 1
        if self.problem:
            raise self.problem
        return self.asked


@pytest.fixture
def telephone() -> Telephone:
    return Telephone()


@pytest.fixture
def line(telephone: Telephone) -> Line:
    return Line(telephone.connect)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A function that lets the silence after a failure pass."""

    def passes() -> None:
        monkeypatch.setattr(connection, "SILENCE_S", 0.0)

    return passes


def test_one_client_serves_all_questions(telephone: Telephone, line: Line) -> None:
    for question in range(5):
        line.ask(question, telephone.number)
    assert telephone.made == 1


def test_an_answer_is_shared_while_it_is_fresh(telephone: Telephone, line: Line) -> None:
    assert [line.ask("a", telephone.number, fresh_s=60).value for _ in range(3)] == [1, 1, 1]
    assert line.ask("a", telephone.number, fresh_s=0).value == 2


def test_after_a_change_every_question_is_asked_anew(telephone: Telephone, line: Line) -> None:
    line.ask("a", telephone.number, fresh_s=60)
    line.forget()
    assert line.ask("a", telephone.number, fresh_s=60).value == 2


def test_an_api_that_is_away_leaves_the_last_answer_and_says_since_when(telephone: Telephone, line: Line) -> None:
    before = line.ask("a", telephone.number, fresh_s=0)
    telephone.problem = AWAY
    during = line.ask("a", telephone.number, fresh_s=0)
    assert (during.value, during.at, during.problem) == (before.value, before.at, AWAY)
    assert line.away_since is not None


def test_a_page_waits_once_for_an_api_that_is_away(telephone: Telephone, line: Line) -> None:
    telephone.problem = AWAY
    answers = [line.ask(question, telephone.number) for question in range(6)]
    assert telephone.asked == 1
    assert [answer.problem for answer in answers] == [AWAY] * 6


def test_an_api_that_comes_back_is_found_through_a_new_client(
    telephone: Telephone, line: Line, at_once: Callable[[], None]
) -> None:
    at_once()
    telephone.problem = AWAY
    line.ask("a", telephone.number)
    telephone.problem = None
    answer = line.ask("a", telephone.number)
    assert (answer.problem, line.away_since, telephone.made) == (None, None, 2)


def test_away_since_is_the_first_failure(telephone: Telephone, line: Line, at_once: Callable[[], None]) -> None:
    at_once()
    telephone.problem = AWAY
    line.ask("a", telephone.number)
    first = line.away_since
    line.ask("a", telephone.number)
    assert line.away_since == first


def test_an_api_whose_database_is_away_is_away(telephone: Telephone, line: Line) -> None:
    telephone.problem = RotBenchError("the database does not answer", status=503)
    line.ask("a", telephone.number)
    assert line.away_since is not None


def test_a_refusal_is_an_answer(telephone: Telephone, line: Line) -> None:
    line.ask("a", telephone.number, fresh_s=0)
    telephone.problem = RotBenchError("there is no such run", status=404)
    answer = line.ask("a", telephone.number, fresh_s=0)
    assert (answer.value, answer.problem, line.away_since) == (None, telephone.problem, None)


def test_memory_is_bounded(telephone: Telephone, line: Line) -> None:
    for question in range(connection.KEPT + 10):
        line.ask(question, telephone.number, fresh_s=60)
    assert line.ask(0, telephone.number, fresh_s=60).value == connection.KEPT + 11
    assert line.ask(connection.KEPT + 9, telephone.number, fresh_s=60).value == connection.KEPT + 10


def test_a_question_that_is_under_way_is_not_asked_twice(telephone: Telephone, line: Line) -> None:
    rings, may_answer = threading.Event(), threading.Event()

    def slowly(bench: Any) -> int:
        rings.set()
        may_answer.wait(60)
        return telephone.number(bench)

    line.ahead("a", slowly)
    assert rings.wait(60)
    threading.Timer(0.05, may_answer.set).start()
    assert line.ask("a", telephone.number, fresh_s=0).value == 1
    assert telephone.asked == 1


def test_what_is_at_hand_is_not_asked_ahead(telephone: Telephone, line: Line) -> None:
    line.ask("a", telephone.number, fresh_s=60)
    line.ahead("a", telephone.number, fresh_s=60)
    assert line.ask("a", telephone.number, fresh_s=60).value == 1


def test_an_answer_that_took_long_is_fresh_for_longer(
    telephone: Telephone, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(connection.time, "monotonic", lambda: now[0])

    def slowly(bench: Any) -> int:
        now[0] += 2 + connection.QUICK_S
        return telephone.number(bench)

    line.ask("a", slowly, fresh_s=0)
    now[0] += 2 * connection.PATIENCE - 1
    assert line.ask("a", telephone.number, fresh_s=0).value == 1
    now[0] += 2
    assert line.ask("a", telephone.number, fresh_s=0).value == 2
