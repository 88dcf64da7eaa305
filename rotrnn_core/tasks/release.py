"""How do published files become a data set? Found, imported or fetched, then prepared once for every run.

A prepared data set lies in a folder that bears its task, protocol and content hash; beside it a record names that
folder and says where the data came from.
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rotrnn_core.tasks.archives import is_archive, unpack
from rotrnn_core.tasks.dataset import SPLITS, Dataset
from rotrnn_core.tasks.download import Download, Progress, check, fetch
from rotrnn_core.tasks.errors import BadData, DataMissing
from rotrnn_core.tasks.storage import FORMAT, Pieces, read, unfinished, write, writing

DEEPEST = 3
"""How far below the given folder the official layout is looked for."""


@dataclass(frozen=True)
class Release:
    """A published data set.

    Args:
        protocol: Changes whenever the same files would give other examples.
        collection: Folder below `downloads` in which its files are kept; tasks of one archive share it.
        marker: A path by which the official layout is known.
        read: From the folder that holds the marker to the examples.
        wanted: Patterns of the archive's members that are needed.
        most_bytes: More than these members can come to.
        downloads: The files; none where nobody offers them under an address.
        installed: Folders in which a system package puts the layout.
    """

    protocol: int
    collection: str
    marker: str
    read: Callable[[Path], Pieces]
    wanted: tuple[str, ...]
    most_bytes: int
    downloads: tuple[Download, ...] = ()
    installed: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Prepared:
    """What the record of a prepared data set says.

    Args:
        folder: Name of its folder.
        content: SHA-256 of its arrays' hashes.
        source: Where the files lay.
        archives: SHA-256 of each archive that was read.
    """

    folder: str
    content: str
    source: str
    archives: dict[str, str]


def record_of(name: str, release: Release, data_dir: Path) -> Prepared | None:
    """What is known of a prepared data set; None when there is none.

    Raises:
        BadData: The record is damaged.
    """
    path = _record_path(name, release, data_dir)
    try:
        return Prepared(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise BadData(path, f"damaged ({error}); delete it, then import or fetch {name} again") from error


def load(name: str, release: Release, data_dir: Path) -> Dataset:
    """The data set, prepared first where its files lie at hand.

    Raises:
        DataMissing: It cannot be had; the text holds the command that mends it.
    """
    record = record_of(name, release, data_dir)
    if record is None or not (data_dir / record.folder).exists():
        source = at_hand(release, data_dir)
        if source is None:
            fetching = f"run `rotbench data fetch {name} --data-dir {data_dir}`, or " if release.downloads else ""
            raise DataMissing(
                f"the data of {name} are not in {data_dir}: {fetching}"
                f"run `rotbench data import {name} PATH --data-dir {data_dir}` on a copy of the official files"
            )
        record = prepare(name, release, source, data_dir)
    return read(data_dir / record.folder)


def is_here(name: str, release: Release, data_dir: Path) -> bool:
    """Whether `load` would find something to read."""
    try:
        record = record_of(name, release, data_dir)
        return (record is not None and (data_dir / record.folder).exists()) or at_hand(release, data_dir) is not None
    except (BadData, OSError):
        return False


def at_hand(release: Release, data_dir: Path) -> Path | None:
    """Where the files lie already: installed on this machine, or fetched before."""
    for folder in release.installed:
        if folder.is_dir():
            return folder
    fetched = data_dir / "downloads" / release.collection
    if not release.downloads or not all((fetched / download.name).exists() for download in release.downloads):
        return None
    return fetched / release.downloads[0].name if len(release.downloads) == 1 else fetched


def fetch_all(release: Release, data_dir: Path, progress: Progress) -> Path:
    """Download whatever is missing, and give where it lies.

    Raises:
        DataMissing: It cannot be had, or is not what it should be.
    """
    folder = data_dir / "downloads" / release.collection
    with writing(data_dir, f"downloads-{release.collection}"):
        for download in release.downloads:
            fetch(download, folder, progress)
    found = at_hand(release, data_dir)
    assert found is not None
    return found


def prepare(name: str, release: Release, source: Path, data_dir: Path) -> Prepared:
    """Read an archive or folder of the official layout into memory-mapped arrays.

    Raises:
        DataMissing: It is not that layout, something in it is wrong, or there is no room.
    """
    key = f"{name}-v{release.protocol}"
    with writing(data_dir, key):
        record = record_of(name, release, data_dir)
        archives = _hashes(release, source)
        if record is not None and record.archives == archives and archives and (data_dir / record.folder).exists():
            return record
        with _opened(release, source, data_dir) as folder, unfinished(data_dir / key) as place:
            content = write(release.read(folder), place)
            target = data_dir / f"{key}-{content[:16]}-f{FORMAT}"
            if not target.exists():
                place.rename(target)
        record = Prepared(target.name, content, str(source.absolute()), archives)
        path = _record_path(name, release, data_dir)
        new = path.with_suffix(".new")
        new.write_text(json.dumps(asdict(record), indent=1), encoding="utf-8")
        new.replace(path)
    return record


def _record_path(name: str, release: Release, data_dir: Path) -> Path:
    return data_dir / f"{name}-v{release.protocol}-f{FORMAT}.json"


def _hashes(release: Release, source: Path) -> dict[str, str]:
    if not source.is_file():
        return {}
    known = next((download for download in release.downloads if download.name == source.name), None)
    return {source.name: check(known or Download(source.name, 0), source, remember=False)}


@contextlib.contextmanager
def _opened(release: Release, source: Path, data_dir: Path) -> Iterator[Path]:
    """The folder that holds the official layout; of an archive, unpacked for the time being."""
    if not source.exists():
        raise DataMissing(f"{source} does not exist")
    if source.is_dir():
        yield find(source, release.marker)
        return
    if not is_archive(source):
        raise BadData(source, "neither a folder nor an archive (tar, tar.gz or zip)")
    with unfinished(data_dir / f"unpacked-{release.collection}") as place:
        unpack(source, place, wanted=release.wanted, most_bytes=release.most_bytes)
        yield find(place, release.marker, within=source)


def find(folder: Path, marker: str, within: Path | None = None) -> Path:
    """The folder at or below `folder` that holds the marker.

    Raises:
        BadData: There is none, or it cannot be read.
    """
    try:
        for depth in range(DEEPEST + 1):
            for found in sorted(folder.glob("*/" * depth + marker)):
                return found.parents[marker.count("/")]
        next(folder.iterdir(), None)
    except OSError as error:
        raise BadData(folder, f"cannot be read: {error.strerror}") from error
    raise BadData(within or folder, f"not the official layout: there is no {marker} in it")


def sizes(dataset: Dataset) -> dict[str, int]:
    """Number of examples of each split."""
    return {split: len(getattr(dataset, split)) for split in SPLITS}
