"""What do a supervisor and its trainer say to each other? One job on stdin, then lines of JSON on a pipe.

Beyond the records of training a trainer says how far it is, what a person should read, and why it failed.
"""

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, Literal

from rotrnn_core import records
from store.status import FailureClass

Level = Literal["info", "warning", "error"]


@dataclass(frozen=True)
class StoredCheckpoint:
    """A checkpoint as the store knows it: what must be true of the file before it is trusted."""

    step: int
    path: str
    sha256: str


@dataclass(frozen=True)
class Job:
    """What a trainer is to do; its checkpoints stand newest first."""

    config: dict[str, Any]
    data_dir: str
    checkpoint_dir: str
    checkpoints: tuple[StoredCheckpoint, ...]
    threads: int

    def to_json(self) -> str:
        """The job as JSON."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Job":
        """The job that `to_json` wrote."""
        fields = json.loads(text)
        return cls(**fields | {"checkpoints": tuple(StoredCheckpoint(**each) for each in fields["checkpoints"])})


@dataclass(frozen=True)
class Progress:
    """So many updates are done; not kept, since the records say it again."""

    step: int


@dataclass(frozen=True)
class Log:
    """A line for people, kept with the run."""

    level: Level
    message: str


@dataclass(frozen=True)
class Failure:
    """Why training ended with an exception; the last thing that a trainer says."""

    failure_class: FailureClass
    reason: str


@dataclass(frozen=True)
class HandedBack:
    """The supervisor stopped in good order while the store was away; only ever the last entry of a spool."""

    reason: str


OwnMessage = Progress | Log | Failure | HandedBack
Message = records.Record | OwnMessage
_OWN: dict[str, type[OwnMessage]] = {kind.__name__: kind for kind in (Progress, Log, Failure, HandedBack)}


def to_line(message: Message) -> str:
    """The message as one line of JSON, without the newline; records as `records.to_line` writes them."""
    if isinstance(message, OwnMessage):
        return json.dumps({"record": type(message).__name__, **vars(message)}, separators=(",", ":"))
    return records.to_line(message)


def from_line(line: str) -> Message:
    """The message that `to_line` wrote.

    Raises:
        ValueError: The line is not JSON, names no message, or its fields are not those of that message.
    """
    opening = '{"record":"'
    begins = len(opening)
    kind = _OWN.get(line[begins : line.find('"', begins)]) if line.startswith(opening) else None
    if kind is None:
        return records.from_line(line)
    fields = json.loads(line)
    del fields["record"]
    if kind is Failure:
        fields["failure_class"] = FailureClass(fields["failure_class"])
    try:
        return kind(**fields)
    except TypeError as error:
        raise ValueError(f"not a {kind.__name__}: {line[:80]!r}") from error
