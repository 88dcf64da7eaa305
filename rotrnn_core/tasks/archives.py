"""How is a stranger's archive opened? Only the wanted plain files, only inside the folder, never more than expected."""

import fnmatch
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from rotrnn_core.tasks.errors import BadData

BLOCK = 1 << 20
Read = Callable[[int], bytes]
"""Gives at most so many bytes, none at the end."""
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError)


def is_archive(path: Path) -> bool:
    """Whether the file is a tar, compressed or not, or a zip."""
    try:
        return zipfile.is_zipfile(path) or tarfile.is_tarfile(path)
    except _DAMAGED:
        return True


def unpack(archive: Path, place: Path, *, wanted: Sequence[str], most_bytes: int) -> None:
    """Unpack the members whose path fits one of the patterns.

    Args:
        archive: A tar, compressed or not, or a zip.
        place: An existing, empty folder.
        wanted: Patterns as of a shell, in which * stands for slashes too.
        most_bytes: Stop where the files come to more than this.

    Raises:
        BadData: The archive is damaged or cut short, a path leads out of the folder, a wanted member is a link or a
            device, or the files come to too much.
    """
    left = most_bytes
    try:
        for name, is_plain, content in _members(archive):
            parts = PurePosixPath(name.replace("\\", "/")).parts
            if not parts or parts[0] == "/" or ".." in parts or ":" in parts[0]:
                raise BadData(archive, f"the path {name!r} leads out of the folder; nothing was unpacked from it")
            if not any(fnmatch.fnmatchcase("/".join(parts), pattern) for pattern in wanted):
                continue
            if not is_plain:
                raise BadData(archive, f"{name!r} is a link or a device, not a file")
            target = place.joinpath(*parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                left -= _copy(content, file, left, archive, most_bytes)
    except _DAMAGED as error:
        raise BadData(archive, f"the archive is damaged or cut short ({error})") from error
    except FileExistsError as error:
        raise BadData(archive, f"{Path(str(error.filename)).relative_to(place)} comes twice") from error


def _copy(content: Read, file: io.BufferedIOBase, left: int, archive: Path, most_bytes: int) -> int:
    copied = 0
    while block := content(BLOCK):
        copied += len(block)
        if copied > left:
            raise BadData(archive, f"unpacks to more than the {most_bytes:,} bytes that this data set may have")
        file.write(block)
    return copied


def _members(archive: Path) -> Iterator[tuple[str, bool, Read]]:
    """Path, whether it is a plain file, and content of everything but folders."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            for info in packed.infolist():
                if not info.is_dir():
                    kind = info.external_attr >> 28
                    with packed.open(info) as content:
                        yield info.filename, kind in (0, 8), content.read
        return
    with tarfile.open(archive, "r:*") as tar:
        for member in tar:
            if not member.isdir():
                stream = tar.extractfile(member) if member.isreg() else None
                yield member.name, member.isreg(), (stream or io.BytesIO()).read
