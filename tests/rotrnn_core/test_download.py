"""Does a download from a real server go on where it broke off, and is nothing taken that is not what it should be?"""

import hashlib
import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rotrnn_core.tasks import BadData, DataMissing, download
from rotrnn_core.tasks.download import Download, fetch

CONTENT = bytes(range(256)) * 12_000


class Server(http.server.ThreadingHTTPServer):
    """Serves CONTENT under any name; breaks off after `break_after` bytes, once; knows ranges if `ranges`."""

    content = CONTENT
    break_after: int | None = None
    ranges = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str | None] = []


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.asked.append(wanted)
        if self.path == "/missing.bin":
            self.send_error(404)
            return
        content, begin = self.server.content, 0
        if wanted and self.server.ranges:
            (begin,) = map(int, re.findall(r"bytes=(\d+)-", wanted))
            if begin >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        body = content[begin:]
        if self.server.break_after is not None:
            body, self.server.break_after = body[: self.server.break_after], None
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def offered(server: Server, name: str = "data.bin", sha256: str | None = "") -> Download:
    known = hashlib.sha256(CONTENT).hexdigest() if sha256 == "" else sha256
    return Download(f"http://127.0.0.1:{server.server_port}/{name}", len(CONTENT), known)


def test_a_file_comes_whole_with_its_progress_and_only_once(server: Server, tmp_path: Path) -> None:
    said: list[tuple[int, int]] = []
    for _ in range(2):
        assert fetch(offered(server), tmp_path, lambda *have: said.append(have)).read_bytes() == CONTENT
    assert len(server.asked) == 1
    assert said[-1] == (len(CONTENT), len(CONTENT))
    assert [path.name for path in tmp_path.iterdir()] == ["data.bin"]


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_connection_is_taken_up_again(server: Server, tmp_path: Path, ranges: bool) -> None:
    server.break_after, server.ranges = 1_000_000, ranges
    assert fetch(offered(server), tmp_path, lambda *_: None).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=1000000-"]


@pytest.mark.parametrize("have", [CONTENT[:5000], CONTENT, CONTENT + b"more"])
def test_a_part_from_an_earlier_try_is_gone_on_from(server: Server, tmp_path: Path, have: bytes) -> None:
    (tmp_path / "data.bin.partial").write_bytes(have)
    assert fetch(offered(server), tmp_path, lambda *_: None).read_bytes() == CONTENT
    assert server.asked[0] == f"bytes={len(have)}-"


def test_a_file_of_another_hash_is_thrown_away(server: Server, tmp_path: Path) -> None:
    with pytest.raises(BadData, match="and the published one is 00"):
        fetch(offered(server, sha256="00"), tmp_path, lambda *_: None)
    assert not list(tmp_path.iterdir())


def test_a_file_without_a_published_hash_is_held_to_the_one_it_first_had(server: Server, tmp_path: Path) -> None:
    fetch(offered(server, sha256=None), tmp_path, lambda *_: None)
    assert hashlib.sha256(CONTENT).hexdigest() in (tmp_path / download.TRUST_FILE).read_text()
    (tmp_path / "data.bin").unlink()
    server.content = CONTENT[:-1] + b"!"
    with pytest.raises(BadData, match="the one it had when it first came"):
        fetch(offered(server, sha256=None), tmp_path, lambda *_: None)


def test_a_server_that_has_nothing_or_is_not_there_is_told(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataMissing, match=r"cannot fetch .*missing\.bin: the server answers 404"):
        fetch(offered(server, "missing.bin"), tmp_path, lambda *_: None)
    nobody = Download("http://127.0.0.1:9/data.bin", 1)
    with pytest.raises(DataMissing, match=r"refused.*; the part that came is kept: try again"):
        fetch(nobody, tmp_path, lambda *_: None)
