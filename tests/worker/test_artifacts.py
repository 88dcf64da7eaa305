"""Are the files of deleted runs removed, those and no others, wherever they lie?"""

import uuid
from collections.abc import Callable
from pathlib import Path
from uuid import UUID, uuid4

import fsspec
import pytest
from sqlalchemy.orm import Session

from store import deletions, runs
from worker import artifacts, places
from worker.settings import WorkerSettings


@pytest.fixture(params=["path", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return places.rooted(tmp_path if request.param == "path" else f"memory://{uuid.uuid4().hex}/")


def put(path: str) -> str:
    with fsspec.open(path, "wb", auto_mkdir=True) as file:
        file.write(b"weights")
    return path


def there(path: str) -> bool:
    store, place = fsspec.core.url_to_fs(path)
    return bool(store.exists(place))


def test_only_what_was_deleted_here_is_removed(root: str, session: Session, queue_run: Callable[..., UUID]) -> None:
    gone, alive, unknown = queue_run(session), queue_run(session), uuid4()
    runs.request_cancel(session, gone)
    runs.delete(session, gone)
    session.commit()
    files = {run_id: put(f"{places.folder_of(root, run_id, 1)}/step-00000001.pt") for run_id in (gone, alive, unknown)}
    notes = put(f"{root}/runs/notes/mine.txt")
    assert artifacts.discard(root, lambda found: deletions.among(session, found)) == [gone]
    assert [there(files[run_id]) for run_id in (gone, alive, unknown)] == [False, True, True]
    assert there(notes)
    put(files[gone])  # a zombie writes once more
    assert artifacts.discard(root, lambda found: deletions.among(session, found)) == [gone]
    assert not there(files[gone])


def test_where_nothing_lies_nothing_is_removed(root: str) -> None:
    assert artifacts.discard(f"{root}/nowhere", lambda found: found) == []


def test_deletions_are_remembered_for_a_while(session: Session, queue_run: Callable[..., UUID]) -> None:
    run_id = queue_run(session)
    runs.request_cancel(session, run_id)
    runs.delete(session, run_id)
    assert deletions.forget(session, older_than_s=3600) == 0
    assert deletions.among(session, [run_id]) == {run_id}
    assert deletions.forget(session, older_than_s=-1) == 1
    assert deletions.among(session, [run_id]) == set()


@pytest.mark.parametrize("place", ["/data/artifacts", "s3://bucket/artifacts", "file:///data/artifacts"])
def test_a_path_within_the_artifacts_is_kept_without_them_and_found_again(place: str) -> None:
    root = WorkerSettings(database_url="postgresql://x", artifacts=f"{place}/").artifacts
    assert root == place
    path = f"{places.folder_of(root, uuid4(), 2)}/step-00000010.pt"
    kept = places.relative(root, path)
    assert kept.startswith("runs/")
    assert places.absolute(root, kept) == path
    assert places.absolute(root, "/elsewhere/step.pt") == places.relative(root, "/elsewhere/step.pt")


def test_a_store_that_nothing_here_speaks_to_is_refused_with_what_would_help() -> None:
    fsspec.register_implementation("far", "farfs.FarFileSystem", errtxt="Install farfs", clobber=True)
    with pytest.raises(artifacts.StoreUnknown, match="python -m pip install farfs"):
        artifacts.check_reach("far://bucket/x")
    with pytest.raises(artifacts.StoreUnknown, match="nonsense:// is no kind of store"):
        artifacts.check_reach("nonsense://x")
    for known in ("/data/artifacts", "memory://x", "file:///x"):
        artifacts.check_reach(known)


def test_half_written_files_of_earlier_attempts_are_removed(tmp_path: Path) -> None:
    run = tmp_path / "runs" / str(uuid4())
    for attempt in (1, 2):
        (run / f"attempt-{attempt}").mkdir(parents=True)
        (run / f"attempt-{attempt}" / "step-00000005.pt").touch()
    (run / "attempt-1" / ".step-x.partial").touch()
    artifacts.discard_unfinished(str(run / "attempt-3"))
    assert sorted(path.name for path in run.rglob("*.*")) == ["step-00000005.pt", "step-00000005.pt"]
