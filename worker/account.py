"""What has the trainer said, and what follows from it? Facts for the verdict, and words on their way to the spool."""

import time
from datetime import UTC, datetime

import structlog

from rotrnn_core.records import Divergence, Finished
from worker.journal import Journal
from worker.messages import Failure, Level, Log, Message, Progress, from_line, to_line
from worker.spool import Spool
from worker.trainer_process import Said

MOST_WAITING = 10_000
"""So many words may wait for a disk that refuses them; then the supervisor stops listening, and the trainer waits."""


class Account:
    """What one attempt has said so far."""

    def __init__(self) -> None:
        self.step: int | None = None
        """Updates done, as far as they were heard of."""
        self.finished = False
        self.divergence: Divergence | None = None
        self.failure: Failure | None = None
        self.progress_at = time.monotonic()
        """When the last word of progress was heard."""
        self._journal = Journal()
        self._waiting: list[tuple[str, str]] = []
        self._disk_refuses = False

    @property
    def waiting(self) -> bool:
        """Whether anything waits for the spool."""
        return bool(self._waiting)

    @property
    def full(self) -> bool:
        """Whether too much waits for the disk."""
        return len(self._waiting) >= MOST_WAITING

    def hear(self, said: Said) -> None:
        """Take in one line from the trainer."""
        if said.source != "messages":
            for log in self._journal.keep(said.source, said.line):
                self.note(log)
            return
        try:
            message = from_line(said.line)
        except ValueError as error:
            self.say("warning", f"the trainer said something that is no message: {error}")
            return
        self._learn(message)
        if not isinstance(message, Progress | Failure):
            self._waiting.append((_now(), said.line))

    def _learn(self, message: Message) -> None:
        match message:
            case Log():
                return
            case Finished():
                self.finished = True
            case Divergence():
                self.divergence = message
            case Failure():
                self.failure = message
        if not isinstance(message, Failure):
            self.step = max(self.step or 0, getattr(message, "step", 0))
        self.progress_at = time.monotonic()

    def say(self, level: Level, text: str) -> None:
        """Add a line of our own to the run's log."""
        self.note(Log(level, text))

    def note(self, message: Message) -> None:
        """Add a message of our own."""
        self._waiting.append((_now(), to_line(message)))

    def keep(self, spool: Spool) -> None:
        """Move what waits into the spool; where the disk refuses, it waits on."""
        try:
            spool.append(self._waiting)
        except OSError as error:
            if not self._disk_refuses:
                structlog.get_logger().error("the spool's disk refuses", spool=str(spool.path), error=str(error))
            self._disk_refuses = True
            return
        self._disk_refuses = False
        self._waiting.clear()

    def end(self) -> None:
        """Nothing more will be heard."""
        for log in self._journal.left_out():
            self.note(log)


def _now() -> str:
    return datetime.now(UTC).isoformat()
