"""What is kept of the free text that a trainer prints? Its lines with a level, and not more than a person can read."""

import time
from collections.abc import Callable
from typing import Literal

from worker.messages import Level, Log

BURST = 2000
PER_S = 50.0

_LEVELS: dict[str, Level] = {"stdout": "info", "stderr": "warning"}


class Journal:
    """Passes lines on at BURST at once and PER_S for long, and says how many it left out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._room = float(BURST)
        self._filled_at = clock()
        self._left_out = 0

    def keep(self, source: Literal["stdout", "stderr"], line: str) -> list[Log]:
        """What goes into the run's log for this line: nothing, the line, or first how many were left out before it."""
        if not line.strip():
            return []
        now = self._clock()
        self._room = min(float(BURST), self._room + (now - self._filled_at) * PER_S)
        self._filled_at = now
        if self._room < 1:
            self._left_out += 1
            return []
        self._room -= 1
        return [*self.left_out(), Log(_LEVELS[source], line)]

    def left_out(self) -> list[Log]:
        """A line that says how many were left out since the last such line, if any."""
        if not self._left_out:
            return []
        count, self._left_out = self._left_out, 0
        return [Log("warning", f"{count} lines left out: more than {PER_S:g} a second")]
