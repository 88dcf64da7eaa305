"""How does a server live in a folder: one owner, a free port, a password, and an end that leaves nothing?"""

import fcntl
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from deploy.local import binaries, children, ports

READY_WITHIN_S = 60.0
STOP_WITHIN_S = 30.0


class ServerFailed(binaries.ServerUnavailable):
    """A server did not come up; the message holds the end of its log."""


class FolderInUse(binaries.ServerUnavailable):
    """Another process of this machine runs a server on the same folder."""


class FolderServer:
    """A server process that owns a folder: one at a time, on 127.0.0.1, behind a random password.

    Stopping and starting again keeps port and password, so that its url stays true for as long as the object lives.
    """

    name: str
    stop_signal = signal.SIGTERM

    def __init__(self, data_dir: Path | str, *, log: Path | None = None) -> None:
        self.data_dir = Path(data_dir).absolute()
        self.log = log or self.data_dir / "log"
        self.port: int | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self._folder_lock: int | None = None

    @property
    def url(self) -> str:
        """The address, password included; known once started."""
        raise NotImplementedError

    @property
    def running(self) -> bool:
        """Whether the process that we started is alive."""
        return self.process is not None and not children.ended(self.process)

    def start(self) -> Self:
        """Start the server and wait until it answers; nothing happens when it runs already.

        Raises:
            ServerMissing: When its program isn't on this machine.
            ServerFailed: When it ends, or doesn't answer in a minute.
            FolderInUse: When another process holds the folder.
        """
        if self.running:
            return self
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self._lock_folder()
        try:
            self._prepare()
            for last_try in (False, False, False, True):
                fresh = self.port is None
                self.port = self.port or ports.any_free_port()
                if self._run(last_try or not fresh):
                    break
                self.port = None
            self._after_start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End the server in good order, and by force when it doesn't."""
        if self.process is not None:
            children.end(self.process, first=self.stop_signal, grace_s=STOP_WITHIN_S)
            self.process = None
        if self._folder_lock is not None:
            os.close(self._folder_lock)
            self._folder_lock = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _command(self) -> Sequence[str | Path]:
        raise NotImplementedError

    def _prepare(self) -> None:
        """Bring the folder into a state that the server can start on."""

    def _after_start(self) -> None:
        """Make what must exist inside the server."""

    def _answers(self) -> bool:
        """Whether the server answers, to the password."""
        raise NotImplementedError

    def _run(self, must_work: bool) -> bool:
        command = self._command()
        self.process = children.spawn(
            command, log=self.log, env=os.environ, cwd=self.data_dir, death_signal=self.stop_signal
        )
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline:
            if children.ended(self.process):
                if must_work or "in use" not in self._end_of_log():
                    raise ServerFailed(f"{self.name} ended with code {self.process.returncode}:\n{self._end_of_log()}")
                return False
            if self._answers():
                return True
            time.sleep(0.03)
        raise ServerFailed(f"{self.name} did not answer within {READY_WITHIN_S:.0f} s:\n{self._end_of_log()}")

    def _end_of_log(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-10:]) if self.log.exists() else "(no log)"

    def _lock_folder(self) -> None:
        if self._folder_lock is not None:
            return
        lock = os.open(self.data_dir / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise FolderInUse(f"another process runs {self.name} on {self.data_dir}") from None
        self._folder_lock = lock

    def _password(self) -> str:
        kept = self.data_dir / "password"
        if not kept.exists():
            with os.fdopen(os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                file.write(secrets.token_urlsafe(24))
        return kept.read_text()
