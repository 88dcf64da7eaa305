"""Where do checkpoints lie? A folder of this machine, or the URL of a store that fsspec knows, such as s3://bucket/x."""

import hashlib
from collections.abc import Callable, Collection
from pathlib import Path
from uuid import UUID

from fsspec.core import url_to_fs

_RUNS = "runs"


def rooted(place: object) -> str:
    """A URL as it is, and a path from the root of this machine's files; neither ends with a slash."""
    text = str(place)
    return text.rstrip("/") if "://" in text else str(Path(text).absolute())


def folder_of(artifacts: str, run_id: UUID, attempt: int) -> str:
    """Where one attempt's checkpoints go."""
    return f"{artifacts}/{_RUNS}/{run_id}/attempt-{attempt}"


def relative(artifacts: str, path: str) -> str:
    """The path as the store keeps it: within `artifacts`, so that the whole may move."""
    return path.removeprefix(f"{artifacts}/")


def absolute(artifacts: str, kept: str) -> str:
    """Where a path lies that the store keeps."""
    return kept if kept.startswith("/") or "://" in kept else f"{artifacts}/{kept}"


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
    store, place = url_to_fs(f"{artifacts}/{_RUNS}")
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
