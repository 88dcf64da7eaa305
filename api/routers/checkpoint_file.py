"""How does one take a checkpoint home? Its bytes as they lie in the artifact store, with their SHA-256."""

import base64
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Annotated, Any, BinaryIO
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import StreamingResponse
from fsspec.core import url_to_fs

from api.documentation import problems
from api.problems import Refusal
from api.sessions import FactoryDep
from store import checkpoints, runs
from store.tables import CheckpointRow

router = APIRouter(prefix="/v1/runs/{run_id}/checkpoints", tags=["runs"])

PIECE = 2**20
Step = Annotated[int, Path(ge=0, le=2**31 - 1)]
_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        "headers": {
            "X-RotBench-SHA256": {
                "description": "Of the whole file, as the worker recorded it.",
                "schema": {"type": "string"},
            }
        },
    }
}


@router.get(
    "/{step}/file",
    responses=problems(401, 404, 409) | _FILE,
    response_class=StreamingResponse,
    summary="Download a checkpoint",
)
def download_checkpoint(
    run_id: UUID,
    step: Step,
    request: Request,
    sessions: FactoryDep,
    attempt: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Of which; else of the last that has it.")] = (
        None
    ),
) -> StreamingResponse:
    """The file, piece by piece; where it lies is known from the store alone."""
    with sessions() as session:
        runs.get(session, run_id)
        kept = checkpoints.newest_first(session, run_id)
    found = next((row for row in kept if row.step == step and attempt in (None, row.attempt)), None)
    if found is None:
        raise Refusal(
            404,
            "no-such-checkpoint",
            f"Run {run_id} keeps no checkpoint of step {step}.",
            field="step",
            value=step,
            remedy="GET /v1/runs/{run_id}/checkpoints lists those that are kept",
        )
    file, size = _opened(request.app.state.settings.artifacts, found)
    digest = base64.b64encode(bytes.fromhex(found.sha256)).decode()
    headers = {
        "Content-Length": str(size),
        "Content-Disposition": f'attachment; filename="{_name(found)}"',
        "X-RotBench-SHA256": found.sha256,
        "Repr-Digest": f"sha-256=:{digest}:",
        "Cache-Control": "private, no-cache",
    }
    return StreamingResponse(_pieces(file), media_type="application/octet-stream", headers=headers)


def _opened(artifacts: str | None, row: CheckpointRow) -> tuple[BinaryIO, int]:
    """The file and its size.

    Raises:
        Refusal: This process does not know the store, cannot reach it, or finds another file there.
    """
    if artifacts is None:
        raise _out_of_reach(row, "The API does not know where checkpoints lie.")
    if row.path.startswith("/") or "://" in row.path or ".." in PurePosixPath(row.path).parts:
        raise _out_of_reach(row, "The checkpoint lies outside the artifact store.")
    try:
        store, place = url_to_fs(f"{artifacts}/{row.path}")
        size = store.size(place)
        file: BinaryIO = store.open(place, "rb")
    except FileNotFoundError:
        raise _out_of_reach(row, "There is no such file in the artifact store that the API sees.") from None
    except (OSError, ImportError, ValueError) as error:
        raise _out_of_reach(row, f"The artifact store does not answer the API ({type(error).__name__}).") from error
    if size != row.size_bytes:
        file.close()
        raise _out_of_reach(row, f"The file has {size} bytes in place of {row.size_bytes}.")
    return file, size


def _out_of_reach(row: CheckpointRow, why: str) -> Refusal:
    return Refusal(
        409,
        "checkpoint-out-of-reach",
        why,
        field="step",
        value=row.step,
        remedy="set ROTBENCH_ARTIFACTS of the API to what its workers have, or take the file from there",
    )


def _name(row: CheckpointRow) -> str:
    return f"run-{str(row.run_id)[:8]}-attempt-{row.attempt}-step-{row.step}.pt"


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while piece := file.read(PIECE):
            yield piece
