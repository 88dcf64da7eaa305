"""The commands of the local stack: python -m deploy.local up | down | status | servers."""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import psutil

from deploy.local import binaries
from deploy.local.folder import Folder, read_json
from deploy.local.leftovers import Identity, end_leftovers, supervisor
from deploy.local.services import answers
from deploy.local.stack import Stack, StackFailed, Wishes

DONE, FAILED = 0, 1
PATIENCE_S = 180.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0 when it did what it says, 1 when it didn't, 2 for wrong usage."""
    wanted = _parser().parse_args(arguments)
    if wanted.command == "servers":
        return _servers(as_json=wanted.json)
    folder = Folder(wanted.data_dir)
    if wanted.command == "up":
        dashboard_port = None if wanted.no_dashboard else wanted.dashboard_port
        wishes = Wishes(wanted.api_port, dashboard_port, wanted.workers)
        return _up_detached(folder, wishes) if wanted.detach else _up(folder, wishes)
    if wanted.command == "down":
        return _down(folder)
    return _status(folder, as_json=wanted.json)


def _up(folder: Folder, wishes: Wishes) -> int:
    """Run a stack in the foreground; when one runs already, say so; when one is just ending, wait for it."""
    folder.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    deadline = time.monotonic() + PATIENCE_S
    waiting = False
    while time.monotonic() < deadline:
        with folder.hold() as ours:
            if ours:
                try:
                    Stack(folder, wishes, _say).run()
                except StackFailed as error:
                    sys.stderr.write(f"RotBench can't run: {error}\n")
                    return FAILED
                return DONE
        if running := _running(folder):
            _say_where(folder, running)
            return DONE
        if not waiting:
            _say(f"Another instance on {folder.root} is starting or ending; waiting for it")
            waiting = True
        time.sleep(0.2)
    _say(f"Another instance on {folder.root} is neither ready nor gone after {PATIENCE_S:.0f} s")
    return FAILED


def _up_detached(folder: Folder, wishes: Wishes) -> int:
    """Start a stack that outlives this command, and return when it is ready."""
    folder.make()
    log = folder.log_of("stack")
    said = log.stat().st_size if log.exists() else 0
    ports = ["--api-port", str(wishes.api_port)]
    ports += ["--no-dashboard"] if wishes.dashboard_port is None else ["--dashboard-port", str(wishes.dashboard_port)]
    workers = "auto" if wishes.workers is None else str(wishes.workers)
    command = [sys.executable, "-m", "deploy.local", "up", "--data-dir", str(folder.root), "--workers", workers, *ports]
    with log.open("ab") as output:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, env=_environment()
        )
    try:
        while True:
            code = child.poll()
            running = _running(folder)
            said = _pass_on(log, said, sys.stdout if code in (None, DONE) else sys.stderr)
            if code is not None:
                return code
            if running is not None and running["pid"] == child.pid:
                return DONE
            time.sleep(0.1)
    except KeyboardInterrupt:
        child.terminate()
        child.wait()
        _pass_on(log, said, sys.stdout)
        return FAILED


def _down(folder: Folder) -> int:
    """End the stack on the folder, or what a killed one left behind."""
    if (running := supervisor(folder)) is not None and folder.held():
        _say(f"Stopping the stack on {folder.root}")
        with contextlib.suppress(psutil.NoSuchProcess):
            running.send_signal(signal.SIGTERM)
            try:
                running.wait(PATIENCE_S)
            except psutil.TimeoutExpired:
                _say("It did not stop in good order; ending it by force")
                running.kill()
                running.wait(PATIENCE_S)
    with folder.hold() as ours:
        if not ours:
            _say(f"Somebody else holds {folder.root}; nothing was ended")
            return FAILED
        left = end_leftovers(folder)
    for name in left:
        _say(f"Ended what a killed instance left behind: {name}")
    _say("Stopped." if running is not None or left else f"No stack runs on {folder.root}.")
    return DONE


def _status(folder: Folder, *, as_json: bool) -> int:
    """Say what runs on the folder; the exit code is 0 only when the API is ready."""
    running = _running(folder)
    ready = running is not None and answers(f"{running['api_url']}/readyz")
    if as_json:
        content = {"running": running is not None, "ready": ready, "data_dir": str(folder.root)} | (running or {})
        sys.stdout.write(json.dumps(content, indent=2) + "\n")
    elif running is None:
        _say(f"No stack is ready on {folder.root}." + (" One is starting or ending." if folder.held() else ""))
    else:
        _say_where(folder, running)
        for name, process in running["processes"].items():
            _say(f"  {name:<14} {process['state']:<11} pid {process['pid']}  restarts {process['restarts']}")
    return DONE if ready else FAILED


def _servers(*, as_json: bool) -> int:
    """Say which Postgres and Redis a stack would run, or what brings them."""
    found: dict[str, dict[str, str]] = {}
    for name, look in (("postgres", binaries.postgres), ("redis", binaries.redis)):
        try:
            program = look()
            found[name] = {"path": str(program.path), "version": program.version}
        except binaries.ServerMissing as error:
            found[name] = {"missing": str(error)}
    if as_json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
    else:
        for name, facts in found.items():
            _say(f"{name:<9} " + (facts.get("missing") or f"{facts['version']}  {facts['path']}"))
    return DONE


def _running(folder: Folder) -> dict[str, Any] | None:
    """What stack.json says, as long as the supervisor that wrote it lives."""
    described = read_json(folder.stack_file)
    alive = supervisor(folder)
    if described is None or alive is None or described.get("pid") != alive.pid:
        return None
    for process in described["processes"].values():
        identity = Identity.read(process)
        if process["state"] == "running" and (identity is None or identity.process() is None):
            process["state"] = "ended"
    return described


def _say_where(folder: Folder, running: dict[str, Any]) -> None:
    _say(f"RotBench runs on {folder.root} (pid {running['pid']}).")
    _say(f"  API        {running['api_url']}")
    if running["dashboard_url"]:
        _say(f"  Dashboard  {running['dashboard_url']}")


def _pass_on(log: Path, start: int, to: TextIO) -> int:
    """Show what a log has gained since a position; returns the new position."""
    with log.open("rb") as lines:
        lines.seek(start)
        gained = lines.read()
    to.write(gained.decode(errors="replace"))
    to.flush()
    return start + len(gained)


def _environment() -> dict[str, str]:
    """Ours, with the folder that `deploy` was found in, so that the command works from any folder."""
    root = str(Path(__file__).parents[2])
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}


def _say(sentence: str) -> None:
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(sentence + "\n")
        sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m deploy.local", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start Postgres, Redis, API, dispatcher, workers and dashboard, and watch them")
    up.add_argument("--api-port", type=_port, default=8000, help="first port to try (default 8000; 0 means any)")
    up.add_argument("--dashboard-port", type=_port, default=8501, help="first port to try (default 8501; 0 means any)")
    up.add_argument("--workers", type=_count, default=None, help="a number, or auto: one per GPU, else one on the CPU")
    up.add_argument("--detach", action="store_true", help="return when the stack is ready, and leave it running")
    up.add_argument("--no-dashboard", action="store_true", help="leave the dashboard out")
    down = commands.add_parser("down", help="end the stack, or what a killed one left behind")
    status = commands.add_parser("status", help="say what runs and where")
    status.add_argument("--json", action="store_true", help="for programs")
    servers = commands.add_parser("servers", help="say which Postgres and Redis would run, or what brings them")
    servers.add_argument("--json", action="store_true", help="for programs")
    for command in (up, down, status):
        command.add_argument("--data-dir", type=Path, default=Path(".rotbench"), help="default .rotbench")
    return parser


def _port(text: str) -> int:
    if text.isdigit() and int(text) < 65536:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no port; give a number from 0 to 65535")


def _count(text: str) -> int | None:
    if text == "auto":
        return None
    if text.isdigit() and int(text) <= 64:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no number of workers; give auto or a number from 0 to 64")


if __name__ == "__main__":
    sys.exit(main())
