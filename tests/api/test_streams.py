"""Does a stream tell everything once and in order, to two hundred listeners, and let the server stop?"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
import uvicorn
from sqlalchemy import select

from store.tables import EventRow

LISTENERS = 200


def parsed(text: str) -> list[dict[str, Any]]:
    """The server-sent events of a stream, comments left out."""
    found = []
    for part in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in part.splitlines() if not line.startswith(":"))
        if fields:
            found.append(fields | {"data": json.loads(fields["data"])})
    return found


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """The address of the service behind a real server."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off", backlog=LISTENERS))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield "http://{}:{}".format(*listening.getsockname())
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive(), "the server does not stop"


def stored(door: Any, run_id: Any) -> list[int]:
    with door.sessions() as session:
        return list(session.scalars(select(EventRow.id).where(EventRow.run_id == run_id).order_by(EventRow.id)))


def test_a_stream_tells_everything_that_happened_and_ends_with_the_run(door: Any) -> None:
    run_id = door.submit()
    door.train(run_id)
    told = parsed(door.http.get(f"/v1/runs/{run_id}/events").text)
    assert [int(event["id"]) for event in told if "id" in event] == stored(door, run_id)
    assert [event["event"] for event in told] == ["submitted", "claimed", "started", "succeeded", "progress", "end"]
    assert told[-1]["data"] == {"status": "succeeded"}


def test_a_stream_goes_on_behind_the_last_event_received(door: Any) -> None:
    run_id = door.submit()
    door.train(run_id)
    ids = stored(door, run_id)
    path = f"/v1/runs/{run_id}/events"
    by_header = door.http.get(path, headers={"Last-Event-ID": str(ids[1])}).text
    assert by_header == door.http.get(path, params={"after": ids[1]}).text
    assert [int(event["id"]) for event in parsed(by_header) if "id" in event] == ids[2:]
    assert door.http.get(path, headers={"Last-Event-ID": "x"}).status_code == 422


def _listen(address: str, path: str, token: str) -> socket.socket:
    parts = urlsplit(address)
    opened = socket.create_connection((parts.hostname, parts.port), timeout=120)
    opened.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nConnection: close\r\n\r\n".encode())
    return opened


def test_two_hundred_listeners_share_one_connection_and_slow_nobody(door: Any) -> None:
    run_id = door.submit()
    pool = door.sessions.kw["bind"].pool
    token = door.http.headers["Authorization"]
    with serving(door.http.app) as address:
        listeners = [_listen(address, f"/v1/runs/{run_id}/events", token) for _ in range(LISTENERS)]
        for listener in listeners:
            assert b"200 OK" in listener.recv(15)
        most = 0
        for _ in range(5):
            most = max(most, pool.checkedout())
            assert httpx2.get(f"{address}/v1/runs/{run_id}", headers={"Authorization": token}).status_code == 200
        assert most <= 3
        door.train(run_id)
        for listener in listeners:
            with listener, listener.makefile(encoding="utf-8") as lines:
                assert "event: end\n" in lines.read()
    until = time.monotonic() + 60
    while any(thread.name == "streams" for thread in threading.enumerate()):
        assert time.monotonic() < until, "the thread that asks for the listeners outlives them"
        time.sleep(0.1)


@pytest.mark.slow
def test_a_server_with_open_streams_stops_when_it_is_told_to(door: Any) -> None:
    run_id = door.submit()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    patient = ["--port", str(port), "--timeout-graceful-shutdown", "600"]
    command = [sys.executable, "-m", "uvicorn", "api.main:app", *patient]
    server = subprocess.Popen(command, env=os.environ | {"ROTBENCH_DATABASE_URL": door.database_url})
    try:
        address = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 120
        while True:
            try:
                assert httpx2.get(f"{address}/livez").status_code == 200
                break
            except httpx2.TransportError:
                assert server.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
        listener = _listen(address, f"/v1/runs/{run_id}/events", door.http.headers["Authorization"])
        with listener, listener.makefile(encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("event: progress"):
                    break
            server.send_signal(signal.SIGTERM)
            assert "event: end" not in lines.read()
        assert server.wait(120) in (0, -signal.SIGTERM)
    finally:
        server.kill()
        server.wait()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_defect_ends_the_streams_and_the_next_one_works(door: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = door.submit()
    with monkeypatch.context() as patch:
        patch.setattr("api.streams.events.since", lambda *_: 1 / 0)
        assert door.http.get(f"/v1/runs/{run_id}/events").text == ""
    door.train(run_id)
    assert parsed(door.http.get(f"/v1/runs/{run_id}/events").text)[-1]["event"] == "end"
