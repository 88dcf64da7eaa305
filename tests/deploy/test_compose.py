"""Does the compose file keep its promises, and does it carry a run to its end when an engine is there?"""

import json
import os
import re
import shutil
import subprocess
import time
import tomllib
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.local.ports import any_free_port

ROOT = Path(__file__).parents[2]
SECRETS = ("POSTGRES_PASSWORD", "REDIS_PASSWORD", "ROTBENCH_TOKEN")
ONE_SHOT = {"migrate"}
OF_OTHERS = {"postgres", "redis"}
ANSWERING = {"postgres", "redis", "api", "dashboard"}
SMALL_RUN = {
    "task": {"name": "listops-short", "train_size": 64, "validation_size": 16, "test_size": 16},
    "model": {"cell": {"name": "rotrnn", "n_heads": 2}, "d_model": 8, "d_state": 8, "n_layers": 1},
    "training": {"steps": 6, "batch_size": 4, "warmup_steps": 1, "log_every": 1},
    "probe": {"every": 3, "batch_size": 4},
}


def services(*names: str) -> dict[str, Any]:
    """The services of the compose files named, as written."""
    found: dict[str, Any] = {}
    for name in names:
        found |= yaml.safe_load((ROOT / name).read_text())["services"]
    return found


EVERY = services("docker-compose.cpu.yml") | services("docker-compose.yml")
LASTING = sorted(set(EVERY) - ONE_SHOT)
OURS = sorted(set(EVERY) - OF_OTHERS)


@pytest.mark.parametrize("file", ["docker-compose.yml", "docker-compose.cpu.yml"])
def test_every_secret_is_demanded_wherever_it_is_used(file: str) -> None:
    text = (ROOT / file).read_text()
    for secret in SECRETS:
        used = re.findall(rf"\$\{{?{secret}[^}}]*\}}?", text)
        assert all(use.startswith(f"${{{secret}:?") for use in used), used
    assert not re.search(r"(PASSWORD|TOKEN|AUTH): +[^$\s]", text), "a secret stands in the file"


def test_the_example_names_every_secret_and_sets_none() -> None:
    lines = (ROOT / ".env.example").read_text().splitlines()
    for secret in SECRETS:
        assert f"{secret}=" in lines


@pytest.mark.parametrize("name", LASTING)
def test_a_lasting_service_has_an_init_and_time_to_stop(name: str) -> None:
    assert EVERY[name]["init"] is True
    assert re.fullmatch(r"\d+s", EVERY[name]["stop_grace_period"])
    assert EVERY[name]["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", sorted(ANSWERING))
def test_what_answers_is_asked_for_its_health(name: str) -> None:
    test = EVERY[name]["healthcheck"]["test"]
    assert test[0] == "CMD", "a shell stands between the engine and the check"


@pytest.mark.parametrize("name", OURS)
def test_our_containers_can_do_no_more_than_they_need(name: str) -> None:
    assert EVERY[name]["cap_drop"] == ["ALL"]
    assert EVERY[name]["read_only"] is True
    assert EVERY[name]["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.parametrize("name", sorted(EVERY))
def test_ports_are_open_to_this_machine_only_and_commands_run_without_a_shell(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in EVERY[name].get("ports", []))
    assert isinstance(EVERY[name].get("command", []), list)


def test_nothing_starts_before_what_it_needs() -> None:
    for name in ("api", "dispatcher", "worker", "worker-cpu"):
        assert EVERY[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
    assert EVERY["migrate"]["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert EVERY["dashboard"]["depends_on"]["api"]["condition"] == "service_healthy"


def test_the_worker_reserves_gpus_and_the_one_for_cpus_does_not() -> None:
    reserved = EVERY["worker"]["deploy"]["resources"]["reservations"]["devices"]
    assert reserved == [{"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}]
    assert "deploy" not in EVERY["worker-cpu"]
    assert services("docker-compose.cpu.yml")["worker"] == {"profiles": ["gpu"]}


def test_the_two_workers_differ_in_their_device_alone() -> None:
    def settings(name: str) -> dict[str, str]:
        given = dict(EVERY[name]["environment"])
        given.pop("ROTBENCH_DEVICE")
        return given

    assert settings("worker") == settings("worker-cpu")
    for field in ("volumes", "stop_grace_period", "tmpfs", "depends_on"):
        assert EVERY["worker"][field] == EVERY["worker-cpu"][field]


def test_only_the_worker_image_has_torch() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

    def needs(extra: str) -> set[str]:
        found: set[str] = set()
        for line in extras[extra]:
            inner = re.fullmatch(r"rotbench\[(.+)\]", line)
            names = inner.group(1).split(",") if inner else []
            found |= set.union(*(needs(name) for name in names)) if names else {re.split(r"[^\w-]", line)[0]}
        return found

    installed = re.findall(r'"\.\[([\w,]+)\]"', (ROOT / "deploy/docker/Dockerfile").read_text())
    with_torch = {extra for line in installed for extra in line.split(",") if "torch" in needs(extra)}
    assert sorted(installed) == ["api,dispatcher", "dashboard", "worker"]
    assert with_torch == {"worker"}


def test_images_run_without_root_and_without_a_shell() -> None:
    stages = re.split(r"(?m)^FROM ", (ROOT / "deploy/docker/Dockerfile").read_text())
    final = [stage for stage in stages if re.match(r"runtime AS (server|dashboard|worker)\n", stage)]
    assert len(final) == 3
    for stage in final:
        assert "\nUSER rotbench\n" in stage
        assert re.search(r'\nCMD \["', stage)


def engine_missing() -> str:
    """Why the compose file can't be run here; empty when it can."""
    if shutil.which("docker") is None:
        return "docker is not installed"
    if compose() is None:
        return "neither `docker compose` nor docker-compose is installed"
    answer = subprocess.run(["docker", "info"], capture_output=True, check=False, timeout=30)
    return "" if answer.returncode == 0 else "no Docker engine answers"


def compose() -> list[str] | None:
    """The compose command of this machine."""
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    plugin = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    return ["docker", "compose"] if plugin.returncode == 0 else None


class Project:
    """A compose project of a name, secrets and ports of its own."""

    def __init__(self) -> None:
        self.name = f"rotbench-test-{uuid.uuid4().hex[:8]}"
        self.token = uuid.uuid4().hex
        self.ports = {"ROTBENCH_API_PORT": any_free_port(), "ROTBENCH_DASHBOARD_PORT": any_free_port()}
        self._env = os.environ | {name: str(port) for name, port in self.ports.items()}
        self._env |= {"POSTGRES_PASSWORD": uuid.uuid4().hex, "REDIS_PASSWORD": uuid.uuid4().hex}
        self._env["ROTBENCH_TOKEN"] = self.token

    def __call__(self, *arguments: str) -> str:
        """Run compose and return what it printed."""
        files = ["-f", "docker-compose.yml", "-f", "docker-compose.cpu.yml"]
        line = [*(compose() or []), "-p", self.name, *files, *arguments]
        done = subprocess.run(line, cwd=ROOT, env=self._env, capture_output=True, text=True, check=False, timeout=1800)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def container(self, service: str) -> dict[str, Any]:
        """What the engine knows about a service's container."""
        answer = subprocess.run(
            ["docker", "inspect", self("ps", "-q", service).strip()], capture_output=True, check=True
        )
        described = json.loads(answer.stdout)[0]
        assert isinstance(described, dict)
        return described

    def ask(self, path: str, body: object = None) -> Any:
        """One request to the API."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.ports['ROTBENCH_API_PORT']}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as response:
            return json.load(response)


@pytest.fixture(scope="module")
def project() -> Iterator[Project]:
    if reason := engine_missing():
        pytest.skip(reason)
    made = Project()
    try:
        made("up", "--build", "--detach")
        yield made
    finally:
        made("down", "--volumes", "--timeout", "60")


@pytest.mark.slow
@pytest.mark.docker
def test_compose_carries_a_run_to_its_end_without_root_and_stops_in_good_order(project: Project) -> None:
    deadline = time.monotonic() + 120
    while project.container("dashboard")["State"]["Health"]["Status"] != "healthy":
        assert time.monotonic() < deadline, project("logs", "--tail", "20")
        time.sleep(1)
    run = project.ask("/v1/runs", {"config": SMALL_RUN})
    while run["status"] in ("queued", "running"):
        assert time.monotonic() < deadline + 120, project("logs", "--tail", "20")
        time.sleep(1)
        run = project.ask(f"/v1/runs/{run['id']}")
    assert run["status"] == "succeeded", run
    steps = project.ask(f"/v1/runs/{run['id']}/metrics?key=train_loss")["series"][0]["steps"]
    assert steps[-1] == run["total_steps"]

    for service in ("api", "dispatcher", "worker-cpu", "dashboard"):
        owners = project("exec", "-T", service, "sh", "-c", "cat /proc/[0-9]*/status | grep ^Uid:")
        ours = [line.split()[1] for line in owners.splitlines()]
        assert ours
        assert "0" not in ours, service
        began = time.monotonic()
        project("stop", service)
        assert time.monotonic() - began < 20, service
        assert project.container(service)["State"]["ExitCode"] in (0, 143), service
