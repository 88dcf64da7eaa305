"""Where do checkpoints lie? A folder of this machine, or the URL of a store that fsspec knows, such as s3://bucket/x."""

from pathlib import Path
from uuid import UUID

RUNS = "runs"


def rooted(place: object) -> str:
    """A URL as it is, and a path from the root of this machine's files; neither ends with a slash."""
    text = str(place)
    return text.rstrip("/") if "://" in text else str(Path(text).absolute())


def folder_of(artifacts: str, run_id: UUID, attempt: int) -> str:
    """Where one attempt's checkpoints go."""
    return f"{artifacts}/{RUNS}/{run_id}/attempt-{attempt}"


def relative(artifacts: str, path: str) -> str:
    """The path as the store keeps it: within `artifacts`, so that the whole may move."""
    return path.removeprefix(f"{artifacts}/")


def absolute(artifacts: str, kept: str) -> str:
    """Where a path lies that the store keeps."""
    return kept if kept.startswith("/") or "://" in kept else f"{artifacts}/{kept}"
