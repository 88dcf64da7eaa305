"""Has the worker's main process begun to shut down? A pipe that its pool child can look at.

Celery's warm shutdown waits for the task and tells it nothing. The main process holds the writing end; the moment it
closes it, in good order or because it died, the reading end in the child becomes readable.
"""

import os
import select
from typing import Self


class Lifeline:
    """A pipe made before the fork: cut by the main process, watched by its child."""

    def __init__(self, reading: int, writing: int | None) -> None:
        self._reading = reading
        self._writing = writing

    @classmethod
    def make(cls) -> Self:
        """A new, uncut lifeline."""
        return cls(*os.pipe())

    def cut(self) -> None:
        """Main process: shutdown begins. Safe in a signal handler, and more than once."""
        if self._writing is not None:
            writing, self._writing = self._writing, None
            os.close(writing)

    def watch(self) -> None:
        """Child: keep the reading end only."""
        self.cut()

    @property
    def is_cut(self) -> bool:
        """Whether shutdown has begun."""
        poll = select.poll()
        poll.register(self._reading, select.POLLIN)
        return bool(poll.poll(0))
