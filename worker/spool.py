"""What has this attempt said so far? An append-only file of JSON lines that outlives a database that is away.

The first line names the attempt, every other line is one entry with its own sequence number. A line counts once its
newline is there: what a crash tears off is never read. The writer and the reader may be two threads of one process;
the process that holds a spool has it locked, so that a spool without a lock is one whose process has died.
"""

import fcntl
import json
import os
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

REWIND_AFTER_BYTES = 16 * 2**20
"""Beyond this size a spool that was delivered in full starts afresh, so that a long run does not fill the disk."""

READ_BYTES = 2**20
_ENTRY = re.compile(rb'\{"sequence":(\d+),"at":"([^"]*)","record":(.*)\}')


@dataclass(frozen=True)
class Entry:
    """One thing the attempt said.

    Args:
        sequence: 1, 2, 3 .. within the attempt.
        at: When it was read, ISO 8601 in UTC.
        line: The record as one line of JSON, byte for byte as it was given.
        end: Where the next entry begins, in bytes from the start of the file.
    """

    sequence: int
    at: str
    line: str
    end: int


class SpoolHeld(Exception):
    """Another process, alive, holds this spool."""


class Spool:
    """The spool of one attempt, locked by this process."""

    def __init__(self, path: Path, header: Mapping[str, Any], descriptor: int, *, start: int) -> None:
        self.path = path
        self.header = header
        self._descriptor = descriptor
        self._start = start
        self._delivered = self._synced = self._written = start
        self._sequence = 0
        self._lock = threading.Lock()

    @classmethod
    def create(cls, path: Path, header: Mapping[str, Any]) -> Self:
        """A new spool, which others see only once it is locked and its header is safe on disk.

        Raises:
            OSError: The disk refuses.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps(header).encode() + b"\n"
        unseen = path.with_name(f"{path.name}.new")
        descriptor = os.open(unseen, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            _write_at(descriptor, line, 0)
            os.fsync(descriptor)
            unseen.rename(path)
        except OSError:
            unseen.unlink(missing_ok=True)
            os.close(descriptor)
            raise
        return cls(path, header, descriptor, start=len(line))

    @classmethod
    def open(cls, path: Path) -> Self:
        """The spool that a dead process left behind; every whole entry in it counts as not delivered.

        Raises:
            SpoolHeld: Its process is alive.
            ValueError: Its header is not whole.
            OSError: It is not there, or not ours to open.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with path.open("rb") as file:
                first = file.readline()
                header = json.loads(first) if first.endswith(b"\n") else None
                if not isinstance(header, dict):
                    raise ValueError(f"{path} has no header")
                spool = cls(path, header, descriptor, start=len(first))
                for line in file:
                    if not line.endswith(b"\n") or _ENTRY.fullmatch(line[:-1]) is None:
                        break
                    spool._written += len(line)
                    spool._sequence += 1
            os.ftruncate(descriptor, spool._written)
        except BlockingIOError as error:
            os.close(descriptor)
            raise SpoolHeld(str(path)) from error
        except BaseException:
            os.close(descriptor)
            raise
        return spool

    def append(self, records: Sequence[tuple[str, str]]) -> None:
        """Write (at, line) pairs at the end: all of them, or none when the disk refuses.

        Raises:
            OSError: The disk refuses; the entries that were there before are whole.
        """
        if not records:
            return
        with self._lock:
            data = b"".join(
                b'{"sequence":%d,"at":"%s","record":%s}\n' % (number, at.encode(), line.encode())
                for number, (at, line) in enumerate(records, start=self._sequence + 1)
            )
            try:
                _write_at(self._descriptor, data, self._written)
            except OSError:
                os.ftruncate(self._descriptor, self._written)
                raise
            self._written += len(data)
            self._sequence += len(records)

    def sync(self) -> None:
        """Bring everything that was appended onto the disk itself."""
        with self._lock:
            written = self._written
        if written != self._synced:
            os.fsync(self._descriptor)
            self._synced = written

    @property
    def empty(self) -> bool:
        """Whether every entry was delivered."""
        with self._lock:
            return self._delivered == self._written

    def pending(self) -> list[Entry]:
        """The oldest entries that were not delivered: about READ_BYTES of them, and at least one if there is one."""
        with self._lock:
            data = os.pread(self._descriptor, min(READ_BYTES, self._written - self._delivered), self._delivered)
            if b"\n" not in data:
                data = os.pread(self._descriptor, self._written - self._delivered, self._delivered)
            end = self._delivered
        entries = []
        for line in data.split(b"\n")[:-1]:
            end += len(line) + 1
            found = _ENTRY.fullmatch(line)
            assert found is not None, line
            entries.append(Entry(int(found[1]), found[2].decode(), found[3].decode(), end))
        return entries

    def delivered(self, entry: Entry) -> None:
        """Everything up to and including `entry` has arrived where it belongs."""
        with self._lock:
            self._delivered = entry.end
            if self._delivered == self._written > REWIND_AFTER_BYTES:
                os.ftruncate(self._descriptor, self._start)
                self._delivered = self._synced = self._written = self._start

    def close(self) -> None:
        """Let go of the file and leave it where it is."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # also for a child that was forked meanwhile and has it open
        os.close(self._descriptor)

    def remove(self) -> None:
        """Nothing of it is needed any more."""
        self.path.unlink(missing_ok=True)
        self.close()


def _write_at(descriptor: int, data: bytes, place: int) -> None:
    view = memoryview(data)
    while view:
        count = os.pwrite(descriptor, view, place)
        view, place = view[count:], place + count
