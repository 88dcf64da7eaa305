"""When is a service that ended started again, and when is it given up?"""

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

import psutil

from deploy.local.binaries import ServerUnavailable
from deploy.local.leftovers import Identity

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0

STEADY_AFTER_S = 60.0
"""A service that lived this long has earned the short delay again."""

CRASHES_ALLOWED = 8
"""After so many crashes in a row, none of them after a steady minute, the next one is the last."""


class Service(Protocol):
    """Something that the supervisor keeps alive."""

    name: str

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        """What was started last; it may have ended."""

    def start(self) -> None:
        """Start it; a server waits until it answers, a program doesn't."""

    def alive(self) -> bool:
        """Whether its process lives."""


@dataclass
class Kept:
    """A service, and what happened to it so far."""

    service: Service
    clock: Callable[[], float] = time.monotonic
    restarts: int = 0
    crashes: int = 0
    given_up: bool = False
    due: float | None = None
    started: float = field(init=False)
    started_at: datetime = field(init=False)

    def start(self) -> None:
        """Start the service.

        Raises:
            ServerUnavailable, OSError: When it can't be started.
        """
        self.due, self.started, self.started_at = None, self.clock(), datetime.now(UTC)
        self.service.start()

    def look(self) -> str | None:
        """Notice that the service ended, or start it again when that is due.

        Returns:
            A sentence for people when something changed, else None.
        """
        if self.given_up:
            return None
        if self.due is None:
            return None if self.service.alive() else self._crashed()
        if self.clock() < self.due:
            return None
        self.restarts += 1
        try:
            self.start()
        except (ServerUnavailable, OSError) as error:
            return f"{self.service.name} can't be started: {error}"
        return f"{self.service.name} was started again"

    def describe(self) -> dict[str, Any]:
        """As JSON: who it is and how it is."""
        process = self.service.process
        try:
            identity = {} if process is None else Identity.of(process.pid).write()
        except psutil.NoSuchProcess:
            identity = {}
        state = "given up" if self.given_up else "running" if self.due is None else "restarting"
        described = {"state": state, "restarts": self.restarts, "started_at": self.started_at.isoformat()}
        return {"pid": None, "started": None, **identity, **described}

    def _crashed(self) -> str:
        name, process = self.service.name, self.service.process
        how = f"{name} ended" + ("" if process is None else f" with code {process.returncode}")
        steady = self.clock() - self.started > STEADY_AFTER_S
        self.crashes = 1 if steady else self.crashes + 1
        if self.crashes > CRASHES_ALLOWED:
            self.given_up = True
            return f"{how}, {self.crashes} times in a row, and is given up"
        delay = min(FIRST_DELAY_S * 2 ** (self.crashes - 1), LONGEST_DELAY_S)
        self.due = self.clock() + delay
        return f"{how} and will be started again in {delay:.1f} s"
