"""How does one follow a run without asking again and again? By the API's stream of events, taken up again when cut."""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from client.errors import APIUnreachable, RotBenchError
from client.http import Transport
from client.results import Event
from client.wire import read

LONGEST_PAUSE_S = 5.0


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    status: str
    step: int
    total_steps: int


def follow(
    http: Transport,
    path: str,
    *,
    after: int = 0,
    patience_s: float = 60.0,
    pause: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Event | Progress]:
    """Everything that the stream at the path tells, each event once and in order, until its end.

    Args:
        after: Only events with a higher id.
        patience_s: How long the API may be away at a stretch.
        pause: Called with the seconds to wait before the stream is asked for again.
        clock: Seconds that only grow.

    Raises:
        APIUnreachable: It stayed away for too long.
        RotBenchError: It refuses.
    """
    told: Progress | None = None
    silent_since, tries = clock(), 0
    while True:
        broke: RotBenchError | None = None
        try:
            for kind, data in _parts(http.lines(path, {"Accept": "text/event-stream", "Last-Event-ID": str(after)})):
                silent_since, tries = clock(), 0
                if kind == "end":
                    return
                if kind != "progress":
                    event = read(Event, data)
                    after = event.id
                    yield event
                elif (now := read(Progress, data)) != told:
                    told = now
                    yield now
        except RotBenchError as error:
            if not error.away:
                raise
            broke = error
        if clock() - silent_since > patience_s:
            raise broke or APIUnreachable(
                f"{http.connection.url} ends the stream of {path} again and again",
                url=http.connection.url,
                remedy="look into the API's log",
            )
        pause(min(LONGEST_PAUSE_S, 0.25 * 2**tries))
        tries += 1


def _parts(lines: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """The name and data of each server-sent event; one that breaks off is left out, as are comments."""
    kind, data = "", ""
    for line in lines:
        field, _, value = line.partition(": ")
        if not line and data:
            yield kind, json.loads(data)
            kind = data = ""
        elif field == "event":
            kind = value
        elif field == "data":
            data = value
