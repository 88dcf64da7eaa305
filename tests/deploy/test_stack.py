"""Does the local stack start, survive, stop and clean up, with the real processes?"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from deploy.local.leftovers import MARK

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "deploy.local"]
SERVERS = {"postgres", "redis"}

pytestmark = pytest.mark.slow


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "a stack"
    yield folder
    deploy("down", folder)


def deploy(command: str, data_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one command of the stack to its end."""
    line = [*COMMAND, command, "--data-dir", str(data_dir), *arguments]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=150, check=False)


def up(data_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Start a detached stack on free ports and expect it to come up."""
    done = deploy("up", data_dir, "--detach", "--api-port", "0", "--dashboard-port", "0", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def status(data_dir: Path) -> dict[str, Any]:
    """What `status --json` says."""
    content = json.loads(deploy("status", data_dir, "--json").stdout)
    assert isinstance(content, dict)
    return content


def family(data_dir: Path) -> list[psutil.Process]:
    """Every process of the instance: what it recorded, their children, and whoever carries its mark."""
    instance = json.loads((data_dir / "instance.json").read_text())
    found = {process["pid"] for process in (instance["supervisor"], *instance["processes"].values())}
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == instance["mark"]:
                found.add(process.pid)
        except (psutil.Error, OSError):
            continue
    members = [psutil.Process(pid) for pid in found]
    return list({member for one in members for member in (one, *one.children(recursive=True))})


def living(processes: list[psutil.Process]) -> list[str]:
    """The processes that still run, in words."""
    words = []
    for process in processes:
        try:
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                words.append(" ".join(process.cmdline()))
        except psutil.NoSuchProcess:
            continue
    return words


def eventually(what: Callable[[], Any], within_s: float = 30.0) -> Any:
    """What a function returns as soon as that is true."""
    deadline = time.monotonic() + within_s
    while not (answer := what()):
        assert time.monotonic() < deadline, f"not within {within_s} s"
        time.sleep(0.1)
    return answer


def answers(url: str) -> bool:
    """Whether a GET answers."""
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=2) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def test_a_stack_comes_up_says_where_it_is_survives_a_kill_and_leaves_nothing(data_dir: Path) -> None:
    up(data_dir)
    seen = status(data_dir)
    assert seen["running"]
    assert seen["ready"]
    assert set(seen["processes"]) == SERVERS | {"api", "dashboard", "dispatcher", "worker-cpu"}
    assert answers(seen["dashboard_url"] + "/_stcore/health")
    assert {"token", "logs", "artifacts", "datasets", "spool"} <= {path.name for path in data_dir.iterdir()}
    token = Path(seen["token_file"]).read_text().strip()
    asked = urllib.request.Request(f"{seen['api_url']}/v1/runs", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(asked, timeout=5) as response:
        assert json.load(response)["items"] == []

    again = up(data_dir)
    assert "runs on" in again.stdout
    assert seen["api_url"] in again.stdout
    assert status(data_dir)["pid"] == seen["pid"]

    os.kill(seen["processes"]["api"]["pid"], signal.SIGKILL)
    eventually(lambda: status(data_dir)["processes"]["api"]["restarts"] == 1)
    eventually(lambda: answers(f"{seen['api_url']}/readyz"))

    everybody = family(data_dir)
    assert len(everybody) >= 8
    down = deploy("down", data_dir)
    assert down.returncode == 0, down.stderr
    assert living(everybody) == []
    assert not (data_dir / "stack.json").exists()
    assert not status(data_dir)["running"]


def test_a_killed_supervisor_is_cleaned_up_by_down_and_by_the_next_up(data_dir: Path) -> None:
    for cleaner in ("down", "up"):
        up(data_dir, "--no-dashboard")
        everybody = family(data_dir)
        os.kill(status(data_dir)["pid"], signal.SIGKILL)
        eventually(lambda: not status(data_dir)["running"])
        if cleaner == "down":
            assert deploy("down", data_dir).returncode == 0
        else:
            up(data_dir, "--no-dashboard", "--workers", "0")
        assert living(everybody) == []


def test_a_taken_port_is_left_to_its_owner_and_the_next_one_is_said_aloud(data_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = deploy("up", data_dir, "--detach", "--api-port", str(port), "--no-dashboard", "--workers", "0")
        assert done.returncode == 0, done.stdout + done.stderr
        api_url = status(data_dir)["api_url"]
        assert f"Port {port} is taken" in done.stdout
        assert api_url in done.stdout
        assert not api_url.endswith(f":{port}")


@pytest.mark.parametrize("moment", ["Starting postgres", "Starting migrate", "Starting worker-cpu"])
def test_an_interrupted_start_leaves_nothing_and_can_be_repeated(data_dir: Path, moment: str) -> None:
    line = [*COMMAND, "up", "--data-dir", str(data_dir), "--api-port", "0", "--no-dashboard"]
    with subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True) as starting:
        assert starting.stdout is not None
        while moment not in starting.stdout.readline():
            assert starting.poll() is None
        everybody = psutil.Process(starting.pid).children(recursive=True)
        starting.send_signal(signal.SIGINT)
        assert starting.wait(60) == 0
    assert living(everybody) == []
    assert not (data_dir / "instance.json").exists()
    if moment == "Starting postgres":
        up(data_dir, "--no-dashboard", "--workers", "0")


def test_a_start_that_fails_says_why_and_leaves_nothing(data_dir: Path) -> None:
    data_dir.mkdir()
    (data_dir / "postgres").write_text("not a folder")
    done = deploy("up", data_dir, "--no-dashboard", "--workers", "0", "--api-port", "0")
    assert done.returncode == 1
    assert "postgres can't be started" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("wrong", [["--api-port", "99999"], ["--workers", "many"], ["--workers", "-1"]])
def test_a_wrong_option_is_refused_with_a_reason(tmp_path: Path, wrong: list[str]) -> None:
    refused = deploy("up", tmp_path, *wrong)
    assert refused.returncode == 2
    assert "no port" in refused.stderr or "no number of workers" in refused.stderr or "expected" in refused.stderr
