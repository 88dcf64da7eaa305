"""What runs in a local stack: each service's command, its environment, and when it counts as ready."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import sysconfig
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.local import children, ports
from deploy.local.folder import Folder
from deploy.local.keeping import Service
from deploy.local.servers import EmbeddedPostgres, EmbeddedRedis

WORKER_GRACE_S = 45.0
"""A worker may take this long to checkpoint and to give its run back."""

OTHERS_GRACE_S = 10.0

# The local stack has a loopback address of its own: a proxy that the user's shell names is for other places.
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Server:
    """An embedded server as a service."""

    def __init__(self, server: EmbeddedPostgres | EmbeddedRedis) -> None:
        self.name = server.name.lower()
        self.server = server

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        return self.server.process

    def start(self) -> None:
        self.server.start()

    def alive(self) -> bool:
        return self.server.running


@dataclass
class Program:
    """A process of ours as a service.

    Args:
        name: Of the service and of its log.
        command: Program and arguments.
        env: The whole environment.
        folder: Where its log goes and where it runs.
        is_ready: Asks from outside; None means that living is enough.
        grace_s: How long it may take to end.
    """

    name: str
    command: Sequence[str | Path]
    env: Mapping[str, str]
    folder: Folder
    is_ready: Callable[[], bool] | None = None
    grace_s: float = OTHERS_GRACE_S
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = children.spawn(
            self.command, log=self.folder.log_of(self.name), env=self.env, cwd=self.folder.root
        )

    def alive(self) -> bool:
        return self.process is not None and not children.ended(self.process)

    def ready(self) -> bool:
        """Whether it does its work at this moment."""
        return self.alive() and (self.is_ready is None or self.is_ready())


@dataclass(frozen=True)
class Addresses:
    """Where the services of one instance find each other."""

    database_url: str
    broker_url: str
    api_port: int
    dashboard_port: int | None

    @property
    def api_url(self) -> str:
        return f"http://{ports.LOOPBACK}:{self.api_port}"

    @property
    def dashboard_url(self) -> str | None:
        return None if self.dashboard_port is None else f"http://{ports.LOOPBACK}:{self.dashboard_port}"


class Programs:
    """Makes the programs of one instance."""

    def __init__(self, folder: Folder, addresses: Addresses, mark: Mapping[str, str]) -> None:
        self._folder = folder
        self._addresses = addresses
        self._env = {
            **os.environ,
            **_from_outside(folder),
            **mark,
            "ROTBENCH_DATABASE_URL": addresses.database_url,
            "ROTBENCH_BROKER_URL": addresses.broker_url,
            "ROTBENCH_SPOOL_DIR": str(folder.spool),
            "ROTBENCH_URL": addresses.api_url,
            "ROTBENCH_TOKEN": folder.token(),
            "PYTHONUNBUFFERED": "1",
            "NO_PROXY": _with_loopback("NO_PROXY"),
            "no_proxy": _with_loopback("no_proxy"),
            **_import_path(),
        }

    def migrate(self) -> Program:
        """The one that brings the schema up to date, makes the token, and ends."""
        return self._python("migrate", "store.migrate")

    def api(self) -> Program:
        """The door."""
        arguments = ["api.main:app", "--host", ports.LOOPBACK, "--port", str(self._addresses.api_port)]
        return self._python(
            "api",
            "uvicorn",
            *arguments,
            "--timeout-graceful-shutdown",
            "5",
            is_ready=lambda: answers(f"{self._addresses.api_url}/readyz"),
        )

    def dispatcher(self) -> Program:
        """From the outbox to the broker, and from expired leases back to the queue."""
        return self._python("dispatcher", "worker.dispatcher")

    def worker(self, device: str, *, threads: int | None) -> Program:
        """The one that trains on a device.

        Args:
            device: "cpu", "cpu:N" or "cuda:N".
            threads: How many CPU threads its trainer gets; None leaves that to the worker.
        """
        name = f"worker-{device.replace(':', '-')}"
        own = {"ROTBENCH_DEVICE": device, "CUDA_DEVICE_ORDER": os.environ.get("CUDA_DEVICE_ORDER", "PCI_BUS_ID")}
        if threads is not None:
            own["ROTBENCH_TRAINER_THREADS"] = str(threads)
        arguments = ["-A", "worker.app", "worker", "--pool", "prefork", "-c", "1"]
        identity = ["--hostname", f"{name}@%h", "--without-gossip", "--without-mingle", "--loglevel", "INFO"]
        return self._python(name, "celery", *arguments, *identity, env=own, grace_s=WORKER_GRACE_S)

    def dashboard(self) -> Program:
        """The window."""
        spec = importlib.util.find_spec("dashboard")
        if spec is None or not spec.submodule_search_locations:
            raise FileNotFoundError("the package `dashboard` is not installed beside `deploy`")
        options = {
            "server.headless": "true",
            "server.address": ports.LOOPBACK,
            "server.port": str(self._addresses.dashboard_port),
            "server.fileWatcherType": "none",
            "server.showEmailPrompt": "false",
            "browser.serverAddress": ports.LOOPBACK,
            "browser.gatherUsageStats": "false",
            "client.toolbarMode": "minimal",
        }
        return self._python(
            "dashboard",
            "streamlit",
            "run",
            str(Path(spec.submodule_search_locations[0]) / "app.py"),
            *(f"--{name}={value}" for name, value in options.items()),
            is_ready=lambda: answers(f"{self._addresses.dashboard_url}/_stcore/health"),
        )

    def _python(
        self,
        name: str,
        module: str,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        is_ready: Callable[[], bool] | None = None,
        grace_s: float = OTHERS_GRACE_S,
    ) -> Program:
        command = [sys.executable, "-m", module, *arguments]
        return Program(name, command, {**self._env, **(env or {})}, self._folder, is_ready, grace_s)


def answers(url: str) -> bool:
    """Whether a GET answers with 2xx in two seconds."""
    try:
        with _direct.open(url, timeout=2) as response:
            return bool(response.status < 300)
    except (OSError, ValueError):
        return False


def ask(url: str, token: str) -> Any:
    """What the API answers to a GET, parsed; None when it doesn't."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    try:
        with _direct.open(request, timeout=5) as response:
            return json.load(response)
    except (OSError, ValueError):
        return None


def stop(services: Sequence[Service]) -> None:
    """End services side by side, each by the signal that it ends on in good order."""
    for service in services:
        if isinstance(service, Server):
            service.server.stop()
    programs = [service for service in services if isinstance(service, Program)]
    processes = [program.process for program in programs if program.process is not None]
    if processes:
        children.end(*processes, first=signal.SIGTERM, grace_s=max(program.grace_s for program in programs))


def _from_outside(folder: Folder) -> dict[str, str]:
    """Where big things lie: in the data folder, unless the environment says otherwise."""
    places = {"ROTBENCH_ARTIFACTS": folder.artifacts, "ROTBENCH_DATA_DIR": folder.datasets}
    wanted = {name: os.environ.get(name) or str(default) for name, default in places.items()}
    return {name: place if "://" in place else str(Path(place).absolute()) for name, place in wanted.items()}


def _with_loopback(name: str) -> str:
    named = os.environ.get(name, "")
    return ",".join(part for part in (named, ports.LOOPBACK, "localhost") if part)


def _import_path() -> dict[str, str]:
    """How the processes find our packages: installed ones as they are, a checkout by its folder."""
    root = Path(__file__).parents[2]
    if root in {Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")}:
        return {}
    return {"PYTHONPATH": os.pathsep.join(part for part in (str(root), os.environ.get("PYTHONPATH", "")) if part)}
