"""Which processes of a killed instance still live, and how are they ended without touching anybody else's?"""

import contextlib
import os
import signal
from dataclasses import asdict, dataclass
from typing import Any, Self

import psutil

from deploy.local.folder import Folder, read_json

MARK = "ROTBENCH_STACK"
"""The environment variable that every process of an instance carries, with the instance's own random value."""

GRACE_S = 15.0
SAME_START_S = 0.05


@dataclass(frozen=True)
class Identity:
    """A process, told apart from a later one with the same number by when it started."""

    pid: int
    started: float

    @classmethod
    def of(cls, pid: int) -> Self:
        """The identity of a process that lives.

        Raises:
            psutil.NoSuchProcess: When it doesn't.
        """
        return cls(pid, psutil.Process(pid).create_time())

    @classmethod
    def read(cls, content: Any) -> Self | None:
        """What `write` wrote, or None for anything else."""
        try:
            return cls(int(content["pid"]), float(content["started"]))
        except (KeyError, TypeError, ValueError):
            return None

    def write(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    def process(self) -> psutil.Process | None:
        """The living process, or None when it has ended, or its number belongs to another one by now."""
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < SAME_START_S
            if same and process.status() != psutil.STATUS_ZOMBIE:
                return process
        return None


def supervisor(folder: Folder) -> psutil.Process | None:
    """The living supervisor that the folder names, or None."""
    content = read_json(folder.instance_file) or {}
    identity = Identity.read(content.get("supervisor"))
    return identity.process() if identity is not None else None


def end_leftovers(folder: Folder) -> list[str]:
    """End what a killed instance left behind and forget it; the caller holds the folder.

    A process counts when its number and start time were recorded, or when it carries the instance's mark. All others
    are left alone.

    Returns:
        The names of the processes that were ended.
    """
    content = read_json(folder.instance_file) or {}
    recorded = {
        name: process
        for name, described in (content.get("processes") or {}).items()
        if (identity := Identity.read(described)) and (process := identity.process())
    }
    known = {process.pid for process in recorded.values()}
    marked = {
        f"{process.name()} ({process.pid})": process
        for process in carriers(content.get("mark"))
        if process.pid not in known
    }
    found = recorded | marked
    for name, process in found.items():
        with contextlib.suppress(psutil.Error):
            process.send_signal(signal.SIGINT if name == "postgres" else signal.SIGTERM)
    _, alive = psutil.wait_procs(list(found.values()), timeout=GRACE_S)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=GRACE_S)
    folder.stack_file.unlink(missing_ok=True)
    folder.instance_file.unlink(missing_ok=True)
    return sorted(found)


def carriers(mark: str | None) -> list[psutil.Process]:
    """Every process of ours, other than this one, whose environment carries an instance's mark."""
    found = []
    for process in psutil.process_iter() if mark else ():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(MARK) == mark:
                found.append(process)
    return found
