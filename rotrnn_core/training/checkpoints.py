"""How does a run survive its process? Checkpoints that are complete or not there, the last two kept.

A folder is a path of this machine, or the URL of any store that fsspec knows, such as s3://bucket/folder.
"""

import contextlib
import hashlib
import io
import os
import pickle
import re
import tempfile
from pathlib import Path
from typing import Any

import torch
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from rotrnn_core.records import Checkpoint

FORMAT = 1
KEPT = 2
_NAME = re.compile(r"/step-[0-9]{8,}\.pt$")


class CheckpointUnusable(Exception):
    """A checkpoint cannot be gone on from: damaged, of another format, or of another run."""


class CheckpointUnwritten(Exception):
    """The disk or the store refuses a checkpoint; those that lie there are whole."""


def save(folder: Path | str, step: int, content: dict[str, Any]) -> Checkpoint:
    """Write `folder`/step-00000100.pt and delete older ones but one.

    On a disk it is written to a temporary file, flushed and renamed; a store of objects takes it whole or not at all.

    Args:
        folder: Where checkpoints lie; made if absent.
        step: Completed updates.
        content: Tensors and plain values, nested.

    Raises:
        CheckpointUnwritten: There is no room, or no way.
    """
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, "step": step, **content}, buffer)
    data = buffer.getbuffer()
    path = f"{folder}/step-{step:08d}.pt"
    try:
        store, place = url_to_fs(path)
        if isinstance(store, LocalFileSystem):
            _replace(Path(place), data)
        else:
            store.pipe_file(place, bytes(data))
    except Exception as error:  # each store has errors of its own, and none may end the training
        raise CheckpointUnwritten(f"{type(error).__name__}: {error}") from error
    with contextlib.suppress(Exception):  # what stays too long does no harm
        found = [old for old in store.ls(place.rpartition("/")[0], detail=False) if _NAME.search(old)]
        for old in sorted(found)[:-KEPT]:
            if old != place:
                store.rm_file(old)
    return Checkpoint(step=step, path=path, sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data))


def load(path: Path | str, config: dict[str, Any]) -> dict[str, Any]:
    """What `save` wrote for a run of this configuration, on the CPU; only tensors and plain values are unpickled.

    Raises:
        CheckpointUnusable: The file is absent, damaged, of another format, or another run's.
    """
    try:
        store, place = url_to_fs(str(path))
        with store.open(place, "rb") as file:
            content = torch.load(io.BytesIO(file.read()), map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, KeyError, ImportError, pickle.UnpicklingError) as error:
        raise CheckpointUnusable(f"cannot read the checkpoint {path}: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CheckpointUnusable(f"{path} is not a checkpoint of format {FORMAT}")
    if content.get("config") != config:
        raise CheckpointUnusable(f"{path} belongs to a run of another configuration")
    return content


def _replace(path: Path, data: memoryview) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, unfinished = tempfile.mkstemp(prefix=".step-", suffix=".partial", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(unfinished, path)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
    _flush_folder(path.parent)


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
