"""Does a checkpoint come home whole? Its bytes and sum as they lie in the store, and words where they don't."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from store.tables import CheckpointRow

BYTES = bytes(range(256)) * 9_000


@pytest.fixture
def artifacts(door: Any, tmp_path: Path) -> Iterator[Path]:
    """A folder that the service takes for the artifact store."""
    state = door.http.app.state
    before = state.settings
    state.settings = before.model_copy(update={"artifacts": str(tmp_path)})
    yield tmp_path
    state.settings = before


def kept(door: Any, path: str, *, step: int = 100, data: bytes = BYTES) -> UUID:
    """A run with a checkpoint at that path of the store."""
    run_id: UUID = door.submit()
    with door.sessions.begin() as session:
        sha256 = hashlib.sha256(data).hexdigest()
        session.add(CheckpointRow(run_id=run_id, step=step, attempt=1, path=path, sha256=sha256, size_bytes=len(data)))
    return run_id


def test_the_file_comes_as_it_was_written_with_its_sum(door: Any, artifacts: Path) -> None:
    (artifacts / "step-00000100.pt").write_bytes(BYTES)
    run_id = kept(door, "step-00000100.pt")
    answer = door.http.get(f"/v1/runs/{run_id}/checkpoints/100/file")
    assert (answer.status_code, answer.content) == (200, BYTES)
    assert answer.headers["x-rotbench-sha256"] == hashlib.sha256(BYTES).hexdigest()
    assert answer.headers["content-length"] == str(len(BYTES))
    assert f'filename="run-{str(run_id)[:8]}-attempt-1-step-100.pt"' in answer.headers["content-disposition"]


def test_a_step_or_attempt_without_a_checkpoint_is_not_there(door: Any, artifacts: Path) -> None:
    run_id = kept(door, "step-00000100.pt")
    assert door.http.get(f"/v1/runs/{run_id}/checkpoints/99/file").status_code == 404
    assert door.http.get(f"/v1/runs/{run_id}/checkpoints/100/file", params={"attempt": 2}).status_code == 404


@pytest.mark.parametrize(
    ("path", "written", "said"),
    [
        ("gone.pt", None, "no such file"),
        ("short.pt", BYTES[:-1], f"{len(BYTES) - 1} bytes in place of {len(BYTES)}"),
        ("../outside.pt", BYTES, "outside the artifact store"),
        ("/etc/hostname", None, "outside the artifact store"),
        ("file:///etc/hostname", None, "outside the artifact store"),
    ],
)
def test_what_the_service_cannot_give_is_refused_in_words(
    path: str, written: bytes | None, said: str, door: Any, artifacts: Path
) -> None:
    if written is not None:
        (artifacts / path).write_bytes(written)
    answer = door.http.get(f"/v1/runs/{kept(door, path)}/checkpoints/100/file")
    assert answer.status_code == 409
    assert said in answer.json()["detail"]
    assert "ROTBENCH_ARTIFACTS" in answer.json()["remedy"]


def test_a_service_that_does_not_know_the_store_says_so(door: Any) -> None:
    answer = door.http.get(f"/v1/runs/{kept(door, 'step-00000100.pt')}/checkpoints/100/file")
    assert answer.json()["type"] == "urn:rotbench:problem:checkpoint-out-of-reach"
    assert "does not know where" in answer.json()["detail"]
