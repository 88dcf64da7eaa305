"""How much memory do this worker and its trainer hold, and how much has its host?"""

import os
from pathlib import Path

from store.workers import Memory

PROC = Path("/proc")
MIB = 2**20
_PARENT, _RESIDENT_PAGES = 1, 21
"""Places among the fields of /proc/PID/stat behind the name."""


def memory_of(pid: int, proc: Path = PROC) -> Memory | None:
    """What a process and its descendants hold, and how much its host has; None where the system does not say.

    Pages that several of them share are counted in each.
    """
    try:
        facts = dict(line.split(":", 1) for line in (proc / "meminfo").read_text().splitlines())
        total, available = (int(facts[name].split()[0]) * 1024 // MIB for name in ("MemTotal", "MemAvailable"))
        family = _resident_pages(pid, _processes(proc))
    except (OSError, ValueError, KeyError):
        return None
    return Memory(family * os.sysconf("SC_PAGE_SIZE") // MIB, total, available)


def _processes(proc: Path) -> dict[int, tuple[int, int]]:
    """Parent and resident pages of every process."""
    found = {}
    for path in proc.iterdir():
        if path.name.isdigit():
            try:
                fields = (path / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended meanwhile
            found[int(path.name)] = int(fields[_PARENT]), int(fields[_RESIDENT_PAGES])
    return found


def _resident_pages(pid: int, processes: dict[int, tuple[int, int]]) -> int:
    children: dict[int, list[int]] = {}
    for child, (parent, _) in processes.items():
        children.setdefault(parent, []).append(child)
    pages, family = 0, [pid]
    while family:
        member = family.pop()
        pages += processes.get(member, (0, 0))[1]
        family += children.get(member, [])
    return pages
