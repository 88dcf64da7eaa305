"""Does cleaning up after a killed instance end its processes and nobody else's?"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.folder import Folder, write_json
from deploy.local.leftovers import MARK, Identity, end_leftovers, supervisor


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path / "data")
    made.make()
    return made


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        yield process
        process.kill()


def test_a_recorded_process_is_ended(folder: Folder, sleeper: subprocess.Popen[bytes]) -> None:
    write_json(folder.instance_file, {"mark": "m", "processes": {"api": Identity.of(sleeper.pid).write()}})
    assert end_leftovers(folder) == ["api"]
    assert sleeper.poll() is not None
    assert not folder.instance_file.exists()


def test_a_later_process_with_the_same_number_is_left_alone(folder: Folder, sleeper: subprocess.Popen[bytes]) -> None:
    earlier = {"pid": sleeper.pid, "started": Identity.of(sleeper.pid).started - 3600}
    write_json(folder.instance_file, {"mark": "m", "supervisor": earlier, "processes": {"api": earlier}})
    assert supervisor(folder) is None
    assert end_leftovers(folder) == []
    assert sleeper.poll() is None


def test_an_orphan_is_known_by_its_mark(folder: Folder) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with (
        subprocess.Popen(command, env=os.environ | {MARK: "ours"}) as ours,
        subprocess.Popen(command, env=os.environ | {MARK: "theirs"}) as theirs,
    ):
        write_json(folder.instance_file, {"mark": "ours", "processes": {}})
        assert len(end_leftovers(folder)) == 1
        assert ours.poll() is not None
        assert theirs.poll() is None
        theirs.kill()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"processes": {"api": {"pid": "x"}}}', '{"supervisor": 7}'])
def test_a_file_that_is_not_ours_harms_nobody(folder: Folder, text: str) -> None:
    folder.instance_file.write_text(text)
    assert supervisor(folder) is None
    assert end_leftovers(folder) == []


def test_the_token_is_made_once_and_is_its_owners_alone(folder: Folder) -> None:
    token = folder.token()
    assert folder.token() == token
    assert len(token) >= 43
    assert folder.token_file.stat().st_mode & 0o077 == 0


def test_one_process_holds_a_folder(folder: Folder) -> None:
    with folder.hold() as first, folder.hold() as second:
        assert (first, second) == (True, False)
    assert not folder.held()
