"""How is a trainer started, heard and ended? A fresh process in a session of its own, with pipes for its words."""

import contextlib
import fcntl
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

TRAINER = (sys.executable, "-m", "worker.trainer")
LONGEST_LINE = 4000
"""A line of free text is cut here; a trainer that prints without a newline fills no memory."""

_PIPE_BYTES = 2**20
_READ_BYTES = 2**18
_OWN_SETTINGS = "ROTBENCH_"


@dataclass(frozen=True)
class Said:
    """One line from the trainer: a message from its pipe, or free text from stdout or stderr."""

    source: Literal["messages", "stdout", "stderr"]
    line: str


class _Lines:
    """Cuts a stream of bytes into lines."""

    def __init__(self, longest: int | None) -> None:
        self._longest = longest
        self._rest = b""

    def cut(self, data: bytes) -> list[str]:
        *whole, self._rest = (self._rest + data).split(b"\n")
        if self._longest is not None and len(self._rest) > self._longest:
            whole, self._rest = [*whole, self._rest], b""
        return [line[: self._longest].decode(errors="replace") for line in whole]

    def end(self) -> list[str]:
        rest, self._rest = self._rest, b""
        return [rest[: self._longest].decode(errors="replace")] if rest else []


class TrainerProcess:
    """A trainer and everything that it started; `end` leaves none of them."""

    def __init__(self, process: subprocess.Popen[bytes], messages: int) -> None:
        self._process = process
        self._selector = selectors.DefaultSelector()
        self._lines: dict[str, _Lines] = {}
        assert process.stdout is not None
        assert process.stderr is not None
        streams = {"messages": messages, "stdout": process.stdout.fileno(), "stderr": process.stderr.fileno()}
        for name, descriptor in streams.items():
            os.set_blocking(descriptor, False)
            self._selector.register(descriptor, selectors.EVENT_READ, name)
            self._lines[name] = _Lines(None if name == "messages" else LONGEST_LINE)
        self._messages = messages

    @classmethod
    def start(cls, command: Sequence[str], job: str, environment: Mapping[str, str]) -> Self:
        """Start `command --messages FD --parent PID` with the job on its stdin.

        Args:
            command: Program and first arguments.
            job: What to write on its stdin.
            environment: Added to ours, from which our own settings (addresses, passwords) are taken out.

        Raises:
            OSError: The process could not be started.
        """
        reading, writing = os.pipe()
        try:
            if hasattr(fcntl, "F_SETPIPE_SZ"):
                with contextlib.suppress(OSError):
                    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            ours = {name: value for name, value in os.environ.items() if not name.startswith(_OWN_SETTINGS)}
            process = subprocess.Popen(
                [*command, "--messages", str(writing), "--parent", str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**ours, **environment},
                pass_fds=[writing],
                start_new_session=True,
            )
        except OSError:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        trainer = cls(process, reading)
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(job.encode())
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        return trainer

    @property
    def pid(self) -> int:
        """Process id; also the id of its group and session."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether the trainer itself has ended. It is not yet waited for, so that its group keeps its number."""
        if self._process.returncode is not None:
            return True
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def listen(self, timeout_s: float) -> list[Said]:
        """What came in, waiting at most `timeout_s` for the first of it."""
        return [said for key, _ in self._selector.select(timeout_s) for said in self._read(key)]

    def last_words(self) -> list[Said]:
        """What an ended trainer left in its pipes."""
        said: list[Said] = []
        while events := self._selector.select(0):
            for key, _ in events:
                said += self._read(key)
        return said

    def _read(self, key: selectors.SelectorKey) -> list[Said]:
        source = key.data
        data = os.read(key.fd, _READ_BYTES)
        if not data:
            self._selector.unregister(key.fd)
        lines = self._lines[source].cut(data) if data else self._lines[source].end()
        return [Said(source, line) for line in lines]

    def ask_to_stop(self) -> None:
        """Ask for a checkpoint and the end of training."""
        if not self.ended:
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill the trainer and all its descendants that stayed in its group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def end(self) -> int:
        """Kill what is left and say how the trainer ended: its exit code, or minus the number of a signal."""
        if self._process.returncode is None:
            self.kill()
            self._process.wait()
            self._selector.close()
            os.close(self._messages)
            for stream in (self._process.stdout, self._process.stderr):
                assert stream is not None
                stream.close()
        return self._process.returncode
