"""How does an archive get here? Resumed where it broke off, checked by its hash, complete or not there.

A file whose hash nobody published is trusted on first use: its hash is written down, and another one is refused from
then on.
"""

import hashlib
import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

from rotrnn_core.tasks.errors import BadData, DataMissing

BLOCK = 1 << 20
TRIES = 5
TIMEOUT_S = 60.0
PARTIAL_CONTENT, RANGE_NOT_SATISFIABLE = 206, 416
TRUST_FILE = "trusted.json"

Progress = Callable[[int, int], None]
"""Is told bytes so far and bytes in all."""


@dataclass(frozen=True)
class Download:
    """One file to be had.

    Args:
        url: Where it lies.
        size: Its bytes; an estimate where `sha256` is None.
        sha256: Its hash, None where nobody published one.
    """

    url: str
    size: int
    sha256: str | None = None

    @property
    def name(self) -> str:
        """Its file name."""
        return self.url.rsplit("/", 1)[-1]


def fetch(download: Download, folder: Path, progress: Progress) -> Path:
    """Bring a file into a folder, unless it lies there already and is right.

    Raises:
        DataMissing: It cannot be had, now or from there.
        BadData: What came is not what it should be; it is deleted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / download.name
    partial = folder / f"{download.name}.partial"
    if target.exists():
        check(download, target)
        return target
    for attempt in range(1, TRIES + 1):
        try:
            _go_on(download, partial, progress)
            break
        except urllib.error.HTTPError as error:
            _give_up(download, f"the server answers {error.code} {error.reason}", error)
        except (OSError, HTTPException) as error:
            if isinstance(error, OSError) and error.filename is not None:
                raise
            if attempt == TRIES:
                _give_up(download, str(error), error)
    try:
        check(download, partial)
    except BadData:
        partial.unlink()
        raise
    os.rename(partial, target)
    return target


def _give_up(download: Download, why: str, error: Exception) -> None:
    text = f"cannot fetch {download.url}: {why}; the part that came is kept: try again, or import a copy of the file"
    raise DataMissing(text) from error


def _go_on(download: Download, partial: Path, progress: Progress) -> None:
    """Append what is missing; begin anew where the server cannot go on or has another file."""
    have = partial.stat().st_size if partial.exists() else 0
    request = urllib.request.Request(download.url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        if not have or error.code != RANGE_NOT_SATISFIABLE:
            raise
        if error.headers.get("Content-Range") == f"bytes */{have}":
            return
        partial.unlink()
        answer = urllib.request.urlopen(download.url, timeout=TIMEOUT_S)
    with closing(answer), partial.open("ab") as file:
        if answer.status != PARTIAL_CONTENT:
            file.truncate(0)
            have = 0
        total = have + int(answer.headers.get("Content-Length") or 0)
        for block in _blocks(answer):
            file.write(block)
            have += len(block)
            progress(have, max(total, have))
        file.flush()
        os.fsync(file.fileno())
    if have < total:
        raise HTTPException(f"the connection ended after {have:,} of {total:,} bytes")


def _blocks(answer: Any) -> Iterator[bytes]:
    while block := answer.read(BLOCK):
        yield block


def check(download: Download, path: Path, *, remember: bool = True) -> str:
    """Hold a file's SHA-256 against the published one, or else the one it had when it first came.

    Args:
        download: What it should be.
        path: Where it lies.
        remember: Write the hash down where none is known.

    Returns:
        The hash.

    Raises:
        BadData: It is another one.
    """
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    record = path.parent / TRUST_FILE
    trusted: dict[str, str] = json.loads(record.read_text()) if record.exists() else {}
    expected = download.sha256 or trusted.get(download.name)
    if expected is not None and found != expected:
        whose = "the published one" if download.sha256 else "the one it had when it first came"
        raise BadData(path, f"its SHA-256 is {found}, and {whose} is {expected}; delete it and fetch it again")
    if expected is None and remember:
        unfinished = record.with_suffix(".new")
        unfinished.write_text(json.dumps(trusted | {download.name: found}, indent=1, sort_keys=True))
        unfinished.replace(record)
    return found
