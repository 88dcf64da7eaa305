"""Does `rotbench checkpoint` bring a file home, and only a whole one?"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from store.tables import CheckpointRow

CONFIG = {"model": {"d_model": 8, "d_state": 8, "cell": "lru"}, "training": {"steps": 20, "warmup_steps": 2}}
BYTES = b"a network" * 227 + b"ends."


@pytest.fixture(scope="module")
def service(open_service: Callable[[], Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """An API with one run, whose checkpoint lies in the artifact store."""
    artifacts = tmp_path_factory.mktemp("artifacts")
    (artifacts / "runs" / "x").mkdir(parents=True)
    (artifacts / "runs" / "x" / "step-00000010.pt").write_bytes(BYTES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROTBENCH_ARTIFACTS", str(artifacts))
        made = open_service()
    with made.client() as client:
        made.train(client.submit(CONFIG).id, logs=["one"])
    return made


def test_a_checkpoint_is_written_whole_or_not_at_all(service: Any, tmp_path: Path) -> None:
    with service.client() as client:
        (run,) = client.runs()
    target = tmp_path / "mine.pt"
    wrong = service.rotbench("checkpoint", run.id, "-o", str(target))
    assert (wrong.exit_code, list(tmp_path.iterdir())) == (1, [])
    assert "other bytes" in wrong.stderr
    sha256 = hashlib.sha256(BYTES).hexdigest()
    with service.sessions.begin() as session:
        session.execute(update(CheckpointRow).values(sha256=sha256))
    right = service.rotbench("checkpoint", run.id, "-o", str(target))
    assert right.exit_code == 0
    assert sha256 in right.stdout
    assert target.read_bytes() == BYTES
    assert list(tmp_path.iterdir()) == [target]


def test_a_step_that_is_not_kept_is_said_to_be_missing(service: Any) -> None:
    with service.client() as client:
        (run,) = client.runs()
    said = service.rotbench("checkpoint", run.id, "--step", "7")
    assert said.exit_code == 1
    assert "keeps no such checkpoint" in said.stderr
