"""Do the commands about data say what is there, one object a line, and fetch from a real server?"""

import dataclasses
import functools
import http.server
import json
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rotrnn_core.catalogue import TASKS
from rotrnn_core.tasks.__main__ import main
from rotrnn_core.tasks.download import Download
from rotrnn_core.tasks.registry import RELEASES

Write = Callable[[str, Path], Path]


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, list[Any], str]]:
    """Gives a command to the tasks: exit code, what was found, and what was said on stderr."""

    def run(command: str, *arguments: str) -> tuple[int, list[Any], str]:
        code = main([command, "--data-dir", str(tmp_path / "data"), *arguments])
        said = capsys.readouterr()
        return code, [json.loads(line) for line in said.out.splitlines()], said.err

    return run


def test_the_list_tells_what_is_here(ask: Any, tmp_path: Path, write_official: Write) -> None:
    official = str(write_official("retrieval", tmp_path / "official"))
    assert ask("import", "retrieval", official)[0] == 0
    code, found, _ = ask("list")
    assert code == 0
    states = {one["task"]: one["state"] for one in found}
    assert list(states) == list(TASKS)
    assert states["retrieval"] == "prepared"
    assert states["text"] == "missing"
    assert states["listops"] == states["digits"] == "generated"


def test_what_was_imported_is_verified_and_damage_is_found(ask: Any, tmp_path: Path, write_official: Write) -> None:
    official = str(write_official("retrieval", tmp_path / "official"))
    (made,) = ask("import", "retrieval", official)[1]
    assert ask("verify")[:2] == (0, [made])
    labels = Path(made["folder"]) / "train.labels.npy"
    labels.write_bytes(labels.read_bytes()[:-1] + b"\x07")
    code, _, said = ask("verify", "retrieval")
    assert code == 1
    assert "damaged" in said
    assert "delete it to have it made anew" in said


def test_a_fetch_tells_size_and_licence_first_and_ends_prepared(
    ask: Any, tmp_path: Path, write_official: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    official = write_official("text", tmp_path / "official")
    archive = tmp_path / "served/aclImdb_v1.tar.gz"
    archive.parent.mkdir()
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(official / "aclImdb", "aclImdb")
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(quiet, directory=str(archive.parent))
    ) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}/aclImdb_v1.tar.gz"
        offered = dataclasses.replace(RELEASES["text"], downloads=(Download(address, archive.stat().st_size),))
        monkeypatch.setitem(RELEASES, "text", offered)
        code, (made,), said = ask("fetch", "text")
        server.shutdown()
        thread.join()
    assert code == 0
    assert said.index("licence: ") < said.index(" of ")
    assert "trusted on first use" in said
    assert made["examples"] == {"train": 18, "validation": 2, "test": 6}
    assert made["archives"].keys() == {"aclImdb_v1.tar.gz"}
    assert ask("prepare", "text")[1] == [made]


def test_digits_are_prepared_from_the_library(ask: Any) -> None:
    (made,) = ask("prepare", "digits")[1]
    assert made["examples"] == {"train": 1297, "validation": 200, "test": 300}


def test_a_floor_is_told_of_data_that_are_here(ask: Any, tmp_path: Path, write_official: Write) -> None:
    assert ask("import", "text", str(write_official("text", tmp_path / "official")))[0] == 0
    code, (found,), _ = ask("floor", "text")
    assert code == 0
    assert found["method"] == "ridge regression on the counts of each token"
    assert 0 <= found["majority"] <= 1
    assert 0.5 <= found["simple"] <= 1


def test_a_look_at_what_is_here_needs_neither_torch_nor_numba(tmp_path: Path, write_official: Write, ask: Any) -> None:
    assert ask("import", "retrieval", str(write_official("retrieval", tmp_path / "official")))[0] == 0
    lines = (
        "import pathlib, sys; from rotrnn_core.tasks.registry import at_hand;"
        f"print(*at_hand(pathlib.Path({str(tmp_path / 'data')!r})));"
        "print(*({'torch', 'numba', 'sklearn'} & set(sys.modules)))"
    )
    asked = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True)
    here, loaded = asked.stdout.split("\n")[:2]
    assert set(here.split()) - {"fashion-mnist"} == {"retrieval"}
    assert loaded == ""
