"""How do pages ask the API? Through one client for all, which keeps its last answers for when the API is away."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

import streamlit as st

from client import APIUnreachable, RotBench, RotBenchError
from client.connection import find
from client.http import Transport

T = TypeVar("T")
KEPT = 96
"""How many answers are kept."""
SILENCE_S = 2.0
"""After a failure, questions are answered from memory for so long, so that a page does not wait once per question."""
QUICK_S = 0.15
PATIENCE = 4.0
"""An answer that took longer than QUICK_S is fresh for so many times as long, so that watching leaves the API idle."""
AT_ONCE = 4
"""How many questions are asked ahead at the same time."""


@dataclass(frozen=True)
class Answer(Generic[T]):
    """What the API said last: the value and when it came; `problem` says why there is none, or none that is newer."""

    value: T | None
    at: datetime | None
    problem: RotBenchError | None = None


@dataclass(eq=False)
class _Turn:
    """Who asks a question now; others who have the same one wait."""

    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True)
class _Kept:
    """An answer, when it came by the monotonic clock, and how long it took."""

    answer: Answer[Any]
    came: float
    took: float

    def is_fresh(self, fresh_s: float) -> bool:
        return time.monotonic() - self.came < max(fresh_s, PATIENCE * (self.took - QUICK_S))


_NOTHING = _Kept(Answer(None, None), -1e9, 0.0)


class Line:
    """A line to the API that pages of all sessions share; safe between threads.

    Args:
        connect: Makes a client; called again after a failure, so that a stack that came back elsewhere is found.
    """

    def __init__(self, connect: Callable[[], RotBench]) -> None:
        self._connect = connect
        self._client: RotBench | None = None
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._lock = threading.Lock()
        self._turns: WeakValueDictionary[Hashable, _Turn] = WeakValueDictionary()
        self._askers = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="ahead")
        self._silent_until = 0.0
        self._failure: RotBenchError | None = None
        self.away_since: datetime | None = None

    def ask(self, question: Hashable, call: Callable[[RotBench], T], *, fresh_s: float = 0.8) -> Answer[T]:
        """The answer to a question: a kept one that is fresh, else a new one, else the last with the problem.

        Args:
            question: Names the question; equal questions share an answer, and one that is under way is waited for.
            call: Asks it.
            fresh_s: A kept answer that is younger is good enough.
        """
        began = time.monotonic()
        with self._lock:
            turn = self._turns.setdefault(question, _Turn())
        with turn.lock:
            with self._lock:
                last = self._kept.get(question, _NOTHING)
            if last.came >= began or last.is_fresh(fresh_s):
                return last.answer
            return self._anew(question, call, last.answer)

    def ahead(self, question: Hashable, call: Callable[[RotBench], object], *, fresh_s: float = 0.8) -> None:
        """Begin to ask what `ask` is about to be asked, beside other questions."""
        with self._lock:
            at_hand = self._kept.get(question, _NOTHING).is_fresh(fresh_s)
        if not at_hand:
            self._askers.submit(self.ask, question, call, fresh_s=fresh_s)

    def _anew(self, question: Hashable, call: Callable[[RotBench], T], last: Answer[T]) -> Answer[T]:
        began = time.monotonic()
        if self._failure is not None and began < self._silent_until:
            return Answer(last.value, last.at, self._failure)
        try:
            answer = Answer(self.tell(call), datetime.now(UTC))
        except RotBenchError as problem:
            if is_away(problem):
                return Answer(last.value, last.at, problem)
            return Answer(None, None, problem)
        came = time.monotonic()
        with self._lock:
            self._kept[question] = _Kept(answer, came, came - began)
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
            self._kept = OrderedDict((name, replace(kept, came=-1e9)) for name, kept in self._kept.items())


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
