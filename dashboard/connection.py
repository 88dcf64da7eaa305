"""How do pages ask the API? Through one client for all, which keeps its last answers for when the API is away."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import streamlit as st

from client import APIUnreachable, RotBench, RotBenchError
from client.connection import find
from client.http import Transport

T = TypeVar("T")
KEPT = 64
"""How many answers are kept."""
SILENCE_S = 2.0
"""After a failure, questions are answered from memory for so long, so that a page does not wait once per question."""


@dataclass(frozen=True)
class Answer(Generic[T]):
    """What the API said last: the value and when it came; `problem` says why there is none, or none that is newer."""

    value: T | None
    at: datetime | None
    problem: RotBenchError | None = None


class Line:
    """A line to the API that pages of all sessions share; safe between threads.

    Args:
        connect: Makes a client; called again after a failure, so that a stack that came back elsewhere is found.
    """

    def __init__(self, connect: Callable[[], RotBench]) -> None:
        self._connect = connect
        self._client: RotBench | None = None
        self._kept: OrderedDict[Hashable, tuple[float, Answer[Any]]] = OrderedDict()
        self._lock = threading.Lock()
        self._silent_until = 0.0
        self._failure: RotBenchError | None = None
        self.away_since: datetime | None = None

    def ask(self, question: Hashable, call: Callable[[RotBench], T], *, fresh_s: float = 0.8) -> Answer[T]:
        """The answer to a question: a kept one that is fresh, else a new one, else the last with the problem.

        Args:
            question: Names the question; equal questions share an answer.
            call: Asks it.
            fresh_s: A kept answer that is younger is good enough.
        """
        with self._lock:
            asked, last = self._kept.get(question, (-1e9, Answer(None, None)))
        now = time.monotonic()
        if now - asked < fresh_s:
            return last
        if self._failure is not None and now < self._silent_until:
            return Answer(last.value, last.at, self._failure)
        try:
            answer = Answer(self.tell(call), datetime.now(UTC))
        except RotBenchError as problem:
            if is_away(problem):
                return Answer(last.value, last.at, problem)
            return Answer(None, None, problem)
        with self._lock:
            self._kept[question] = (time.monotonic(), answer)
            self._kept.move_to_end(question)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return answer

    def tell(self, call: Callable[[RotBench], T]) -> T:
        """Do something at the API now.

        Raises:
            RotBenchError: It refused, or it is away.
        """
        try:
            if self._client is None:
                self._client = self._connect()
            value = call(self._client)
        except RotBenchError as problem:
            if is_away(problem):
                self._client = None
                self._failure = problem
                self._silent_until = time.monotonic() + SILENCE_S
                self.away_since = self.away_since or datetime.now(UTC)
            raise
        self._failure, self.away_since = None, None
        return value

    def forget(self) -> None:
        """Count every kept answer as old: after a change, the next question is asked anew."""
        with self._lock:
            self._kept = OrderedDict((question, (-1e9, answer)) for question, (_, answer) in self._kept.items())


def is_away(problem: RotBenchError) -> bool:
    """Whether nobody could answer, or the API could not reach its database; in contrast to an answer that refuses."""
    return isinstance(problem, APIUnreachable) or problem.status in (502, 503, 504)


def connect() -> RotBench:
    """A client of the API that this dashboard belongs to; it gives up soon, since the page asks again."""
    return RotBench(transport=Transport(find(), timeout_s=15.0, retries=1))


@st.cache_resource
def line() -> Line:
    """The one line of this process."""
    return Line(lambda: connect())
