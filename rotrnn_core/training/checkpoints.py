"""How does a run survive its process? Checkpoints that are complete or not there, the last two kept."""

import hashlib
import os
import pickle
import tempfile
from pathlib import Path
from typing import Any

import torch

from rotrnn_core.records import Checkpoint

FORMAT = 1
KEPT = 2


class CheckpointUnusable(Exception):
    """A checkpoint cannot be gone on from: damaged, of another format, or of another run."""


def save(folder: Path, step: int, content: dict[str, Any]) -> Checkpoint:
    """Write `folder`/step-00000100.pt: a temporary file, flushed to disk, renamed; older ones but one are deleted.

    Args:
        folder: Where checkpoints lie; made if absent.
        step: Completed updates.
        content: Tensors and plain values, nested.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"step-{step:08d}.pt"
    descriptor, unfinished = tempfile.mkstemp(prefix=".step-", suffix=".partial", dir=folder)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            torch.save({"format": FORMAT, "step": step, **content}, file)
            file.flush()
            os.fsync(file.fileno())
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
        os.rename(unfinished, path)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
    _flush_folder(folder)
    for old in sorted(folder.glob("step-*.pt"))[:-KEPT]:
        if old != path:
            old.unlink(missing_ok=True)
    return Checkpoint(step=step, path=str(path), sha256=digest, size_bytes=size)


def load(path: Path, config: dict[str, Any]) -> dict[str, Any]:
    """What `save` wrote for a run of this configuration, on the CPU; only tensors and plain values are unpickled.

    Raises:
        CheckpointUnusable: The file is absent, damaged, of another format, or another run's.
    """
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, KeyError, pickle.UnpicklingError) as error:
        raise CheckpointUnusable(f"cannot read the checkpoint {path}: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CheckpointUnusable(f"{path} is not a checkpoint of format {FORMAT}")
    if content["config"] != config:
        raise CheckpointUnusable(f"{path} belongs to a run of another configuration")
    return content


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
