"""How does root run a server that refuses root, without a new account and without widening anybody's permissions?"""

import contextlib
import hashlib
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from deploy.local.binaries import ServerUnavailable

# What lets another account pass folders that only root may enter, such as root's home; the weaker one first.
TRAVERSE_CAPABILITIES = (("dac_read_search", 2), ("dac_override", 1))


class CantDropRoot(ServerUnavailable):
    """A server that refuses to run as root can't be given another account on this machine."""


def account(data: Path) -> str:
    """The account for a server's data: its owner's; for data to be made, Postgres' own where there is one, else nobody.

    Raises:
        CantDropRoot: When there is no such account.
    """
    with contextlib.suppress(FileNotFoundError, KeyError):
        if owner := data.stat().st_uid:
            return pwd.getpwuid(owner).pw_name
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise CantDropRoot("Postgres refuses to run as root, and there is no account `postgres` or `nobody`")


def as_account(
    name: str, command: Sequence[str | Path], death_signal: signal.Signals, *, traverse: bool = True
) -> list[str]:
    """The command, run by root as another account.

    Args:
        name: The account.
        command: Program and arguments.
        death_signal: What it gets when its parent is killed.
        traverse: Whether it may pass folders that are root's alone.

    Raises:
        CantDropRoot: When `setpriv` is missing, or this root lacks the capability.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise CantDropRoot("Postgres refuses to run as root, and there is no `setpriv` (util-linux); use another user")
    group = pwd.getpwnam(name).pw_gid
    drop = [setpriv, f"--reuid={name}", f"--regid={group}", "--clear-groups", f"--pdeathsig={death_signal.name}"]
    if traverse:
        capability = _traverse_capability()
        drop += [f"--inh-caps=+{capability}", f"--ambient-caps=+{capability}"]
    return [*drop, "--", *(str(part) for part in command)]


def reachable(name: str, program: Path) -> Path:
    """A program that an account can start: itself, or the same in a copy of its installation outside root's folders.

    Postgres looks for its own files by access(2), which no capability helps with.

    Args:
        name: The account.
        program: INSTALLATION/bin/PROGRAM.

    Raises:
        CantDropRoot: When no temporary folder takes a copy that can be started.
    """
    if _can_start(name, program):
        return program
    installation = program.parents[1]
    for place in dict.fromkeys((tempfile.gettempdir(), "/var/tmp")):
        copied = _copy(installation, Path(place)) / program.relative_to(installation.parents[1])
        if _can_start(name, copied):
            return copied
    raise CantDropRoot(f"Postgres refuses to run as root, and the account {name} can't start {program}")


def _copy(installation: Path, place: Path) -> Path:
    """A copy that is made once, and that nobody but root could have made or changed.

    A wheel keeps the libraries of its package beside it, and its programs look for them there; so does the copy.
    """
    package = installation.parent
    made_at = f"{installation} {installation.stat().st_mtime_ns}"
    kept = place / f"rotbench-postgres-{hashlib.sha256(made_at.encode()).hexdigest()[:16]}"
    if _is_roots(kept):
        return kept
    fresh = Path(tempfile.mkdtemp(prefix=f"{kept.name}-", dir=place))
    for part in (installation, package.with_name(package.name + ".libs")):
        if part.is_dir():
            shutil.copytree(part, fresh / part.relative_to(package.parent), symlinks=True)
    fresh.chmod(0o755)
    try:
        fresh.rename(kept)
    except OSError:
        return fresh
    return kept


def _is_roots(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == 0 and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _can_start(name: str, program: Path) -> bool:
    test = as_account(name, ["test", "-x", program], signal.SIGKILL, traverse=False)
    return subprocess.run(test, check=False).returncode == 0


def _traverse_capability() -> str:
    lines = Path("/proc/self/status").read_text().splitlines()
    held = next(int(line.split()[1], 16) for line in lines if line.startswith("CapPrm:"))
    for name, bit in TRAVERSE_CAPABILITIES:
        if held >> bit & 1:
            return name
    raise CantDropRoot(
        "Postgres refuses to run as root, and this root may not pass folders of others; use another user"
    )
