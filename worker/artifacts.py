"""What is done to checkpoints where they lie? Reached, read for their sum, and removed when nobody needs them."""

import hashlib
from collections.abc import Callable, Collection
from pathlib import Path
from uuid import UUID

import fsspec
from fsspec.core import url_to_fs
from fsspec.registry import known_implementations

from worker.places import RUNS


class StoreUnknown(Exception):
    """This installation cannot speak to a store of that kind; the text says what would help."""


def check_reach(artifacts: str) -> None:
    """Whether what speaks to the store is installed; the store itself is not asked.

    Raises:
        StoreUnknown: It is not, or no such kind of store is known.
    """
    address, separator, _ = artifacts.partition("://")
    if not separator:
        return
    protocol = address.rpartition("::")[2]
    try:
        fsspec.get_filesystem_class(protocol)
    except ValueError as error:
        raise StoreUnknown(
            f"artifacts are to go to {artifacts}, and {protocol}:// is no kind of store: {error}"
        ) from error
    except ImportError as error:
        package = known_implementations[protocol]["class"].partition(".")[0]
        remedy = "" if package == "fsspec" else f"; python -m pip install {package}"
        raise StoreUnknown(
            f"artifacts are to go to {artifacts}, and what speaks {protocol}:// is missing{remedy}"
        ) from error


def sha256(path: str) -> str:
    """The SHA-256 of what lies there.

    Raises:
        OSError: It cannot be read.
    """
    store, place = url_to_fs(path)
    with store.open(place, "rb") as file:
        digest = hashlib.sha256()
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest()


def discard(artifacts: str, deleted: Callable[[Collection[UUID]], Collection[UUID]]) -> list[UUID]:
    """Remove the folders of runs that are gone.

    Args:
        artifacts: Where the runs' folders lie.
        deleted: Says of some runs which of them were deleted; only those are touched.

    Returns:
        The runs whose folders were removed.
    """
    store, place = url_to_fs(f"{artifacts}/{RUNS}")
    if not store.exists(place):
        return []
    store.invalidate_cache()
    found: dict[UUID, str] = {}
    for path in store.ls(place, detail=False):
        try:
            found[UUID(path.rstrip("/").rpartition("/")[2])] = path
        except ValueError:
            continue
    gone = [run_id for run_id in deleted(list(found)) if run_id in found] if found else []
    for run_id in gone:
        store.rm(found[run_id], recursive=True)
    return gone


def discard_unfinished(folder: str) -> None:
    """Remove what was left half written in the folders of earlier attempts, which write no more."""
    if "://" not in folder:
        for unfinished in Path(folder).parent.glob("attempt-*/.step-*.partial"):
            unfinished.unlink(missing_ok=True)
