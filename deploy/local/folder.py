"""What lies where in the data folder, who holds it, and what does it say about the stack that runs on it?"""

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LOG_KEPT_BYTES = 10 * 2**20
"""A log longer than this is set aside at the next start; the one set aside before it is dropped."""


class Folder:
    """The data folder of one local stack.

    `stack.json` is for readers and exists while the stack is ready; `instance.json` lists every process from its start
    on, so that the next instance can end what a killed one left behind.
    """

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root).absolute()
        self.token_file = self.root / "token"
        self.stack_file = self.root / "stack.json"
        self.instance_file = self.root / "instance.json"
        self.logs = self.root / "logs"
        self.postgres = self.root / "postgres"
        self.redis = self.root / "redis"
        self.artifacts = self.root / "artifacts"
        self.datasets = self.root / "datasets"
        self.spool = self.root / "spool"

    def make(self) -> None:
        """Make the folder and what the processes expect in it."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (self.logs, self.artifacts, self.datasets, self.spool):
            folder.mkdir(exist_ok=True)
        for log in self.logs.glob("*.log"):
            if log.stat().st_size > LOG_KEPT_BYTES:
                log.replace(log.with_suffix(".log.1"))

    def log_of(self, name: str) -> Path:
        """The log of one process."""
        return self.logs / f"{name}.log"

    def token(self) -> str:
        """The API's token, made at the first call; the file is readable by its owner only."""
        if not self.token_file.exists():
            fresh = self.root / "token.new"
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                file.write(secrets.token_urlsafe(32) + "\n")
            fresh.rename(self.token_file)
        return self.token_file.read_text().strip()

    def held(self) -> bool:
        """Whether an instance holds the folder at this moment."""
        with self.hold() as ours:
            return not ours

    @contextlib.contextmanager
    def hold(self) -> Iterator[bool]:
        """Hold the folder for the length of a with block; yields False when another process holds it.

        The kernel gives the lock back when the holder dies, however it dies.
        """
        if not self.root.is_dir():
            yield True
            return
        with (self.root / "lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
                return
            yield True


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Replace a file by JSON, whole or not at all."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(json.dumps(content, indent=2) + "\n")
    fresh.rename(path)


def read_json(path: Path) -> dict[str, Any] | None:
    """What a JSON file holds, or None when it is absent or not ours."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
