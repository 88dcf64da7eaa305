"""How do many listeners follow their runs? One thread asks the database for all of them; none holds a connection."""

import asyncio
import json
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from store import events
from store.events import Progress
from store.status import TERMINAL
from store.tables import EventRow

POLL_S = 0.5
KEEP_ALIVE_S = 15.0
_MOST_WAITING = 1_000
_END = None


@dataclass(eq=False)
class _Listener:
    run_id: UUID
    after: int
    loop: asyncio.AbstractEventLoop
    parts: asyncio.Queue[str | None] = field(default_factory=asyncio.Queue)
    told: Progress | None = None

    def give(self, part: str | None) -> None:
        with suppress(RuntimeError):  # its loop has ended
            self.loop.call_soon_threadsafe(self.parts.put_nowait, part)


class Streams:
    """The listeners of one process. The thread that asks for them lives while there are any.

    Args:
        sessions: Sessions of the process, one of which is taken for the length of each look.
        poll_s: Pause between two looks.
    """

    def __init__(self, sessions: Callable[[], sessionmaker[Session]], poll_s: float = POLL_S) -> None:
        self._sessions = sessions
        self._poll_s = poll_s
        self._listeners: set[_Listener] = set()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self.closed = False

    async def follow(self, run_id: UUID, after: int) -> AsyncIterator[str]:
        """What happens to a run after the event of that id, as server-sent events, until it has ended.

        Events carry their ids; `progress` says the state and step and has none; `end` is the last.
        """
        listener = _Listener(run_id, after, asyncio.get_running_loop())
        self._enter(listener)
        try:
            while True:
                try:
                    part = await asyncio.wait_for(listener.parts.get(), KEEP_ALIVE_S)
                except TimeoutError:
                    part = ": still here\n\n"
                if part is _END:
                    return
                yield part
        finally:
            self._leave(listener)

    def close(self) -> None:
        """End every stream, now and later."""
        with self._lock:
            self.closed = True
            for listener in self._listeners:
                listener.give(_END)
        self._wake.set()

    def _enter(self, listener: _Listener) -> None:
        with self._lock:
            if self.closed:
                listener.give(_END)
            self._listeners.add(listener)
            if self._thread is None and not self.closed:
                self._thread = threading.Thread(target=self._serve, name="streams", daemon=True)
                self._thread.start()
        self._wake.set()

    def _leave(self, listener: _Listener) -> None:
        with self._lock:
            self._listeners.discard(listener)

    def _serve(self) -> None:
        listeners: list[_Listener] = []
        try:
            while True:
                self._wake.clear()
                with self._lock:
                    listeners = list(self._listeners)
                    if not listeners or self.closed:
                        self._thread = None
                        return
                with suppress(SQLAlchemyError):  # a database that is away is asked again
                    self._look(listeners)
                self._wake.wait(self._poll_s)
        except BaseException:
            # Streams that would stand still end, and their clients come back to a new thread.
            with self._lock:
                self._thread = None
                for listener in listeners:
                    listener.give(_END)
            raise

    def _look(self, listeners: list[_Listener]) -> None:
        since: dict[UUID, int] = {}
        for listener in listeners:
            since[listener.run_id] = min(listener.after, since.get(listener.run_id, listener.after))
        with self._sessions()() as session:
            found = events.since(session, since)
        for listener in listeners:
            self._tell(listener, found.progress.get(listener.run_id), found.events.get(listener.run_id, []))

    def _tell(self, listener: _Listener, progress: Progress | None, happened: list[EventRow]) -> None:
        for event in happened:
            if event.id > listener.after:
                listener.after = event.id
                listener.give(_event(event))
        if progress is not None and progress != listener.told:
            listener.told = progress
            listener.give(_part("progress", vars(progress)))
        if progress is None or (progress.status in TERMINAL and listener.after >= progress.last_event):
            listener.give(_part("end", {"status": progress.status if progress else "deleted"}))
            listener.give(_END)
        elif listener.parts.qsize() > _MOST_WAITING:
            listener.give(_END)


@contextmanager
def ending(streams: Streams) -> Iterator[None]:
    """End the streams when the process is told to stop, before the server waits for them."""

    def stop(signum: int, frame: FrameType | None) -> None:
        streams.close()
        before: Any = previous[signum]
        if callable(before):
            before(signum, frame)

    previous: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        previous = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        streams.close()
        for number, before in previous.items():
            if signal.getsignal(number) is stop:
                signal.signal(number, before)


def _event(event: EventRow) -> str:
    data = {"id": event.id, "at": event.at.isoformat(), "attempt": event.attempt, "message": event.message}
    return f"id: {event.id}\n{_part(event.kind, {'kind': event.kind, **data})}"


def _part(kind: str, data: dict[str, Any]) -> str:
    return f"event: {kind}\ndata: {json.dumps(data, default=str)}\n\n"
