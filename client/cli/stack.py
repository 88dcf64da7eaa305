"""How does a stack start and end on this machine? `rotbench up` and `rotbench down`, by `python -m deploy.local`."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from client.errors import RotBenchError

NEEDED = ("alembic", "celery", "fastapi", "psutil", "psycopg", "redis", "sqlalchemy", "streamlit", "torch", "uvicorn")
DataDirOption = Annotated[Path, typer.Option("--data-dir", metavar="DIR", help="Where everything is kept.")]
DATA_DIR = Path(".rotbench")
STDERR = 2


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("up")(up)
    app.command("down")(down)


def up(
    data_dir: DataDirOption = DATA_DIR,
    api_port: Annotated[
        int | None, typer.Option("--api-port", metavar="N", help="First port to try, 8000 by default.")
    ] = None,
    dashboard_port: Annotated[
        int | None, typer.Option("--dashboard-port", metavar="N", help="First port to try, 8501 by default.")
    ] = None,
    workers: Annotated[
        str | None, typer.Option("--workers", metavar="auto|N", help="How many; one per device by default.")
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Leave it running and come back.")] = False,
    no_dashboard: Annotated[bool, typer.Option("--no-dashboard", help="Without the dashboard.")] = False,
) -> NoReturn:
    """Start a stack here. Ctrl-C ends it.

    Postgres, Redis, API, dispatcher, one worker per device and the dashboard, supervised, on this machine alone.
    """
    arguments = ["up", "--data-dir", str(data_dir)]
    for name, value in (("--api-port", api_port), ("--dashboard-port", dashboard_port), ("--workers", workers)):
        if value is not None:
            arguments += [name, str(value)]
    arguments += ["--detach"] if detach else []
    arguments += ["--no-dashboard"] if no_dashboard else []
    check_installed()
    command = _command(*arguments)
    os.execve(command[0], command, environment())


def down(data_dir: DataDirOption = DATA_DIR) -> None:
    """End the stack here. Its data stays."""
    check_installed()
    raise typer.Exit(subprocess.run(_command("down", "--data-dir", str(data_dir)), env=environment()).returncode)


def running(data_dir: Path) -> dict[str, Any] | None:
    """What the stack of a data folder says of itself, None when none runs.

    Raises:
        RotBenchError: It cannot be asked.
    """
    asked = subprocess.run(
        _command("status", "--json", "--data-dir", str(data_dir)), env=environment(), capture_output=True, text=True
    )
    try:
        said: dict[str, Any] = json.loads(asked.stdout)
    except ValueError:
        last = (asked.stderr.strip() or asked.stdout.strip() or "it says nothing").splitlines()[-1]
        raise RotBenchError(
            f"the stack of {data_dir} cannot be asked: {last}", remedy="run `rotbench doctor`"
        ) from None
    return said if said.get("running") else None


def start(data_dir: Path) -> None:
    """Start a stack that outlives this command, and return when it is ready; its words go to stderr.

    Raises:
        RotBenchError: It did not start.
        KeyboardInterrupt: Ctrl-C; what was started is ended first.
    """
    command = _command("up", "--detach", "--data-dir", str(data_dir))
    starter = subprocess.Popen(command, env=environment(), stdout=STDERR, start_new_session=True)
    try:
        code = starter.wait()
    except KeyboardInterrupt:
        starter.send_signal(signal.SIGINT)
        starter.wait()
        raise
    if code != 0:
        raise RotBenchError(
            f"the stack of {data_dir} did not start", remedy=f"see {data_dir}/logs, or run `rotbench doctor`"
        )


def stop(data_dir: Path) -> None:
    """End the stack of a data folder, even when Ctrl-C is pressed again; its words go to stderr."""
    command = _command("down", "--data-dir", str(data_dir))
    subprocess.run(command, env=environment(), stdout=STDERR, start_new_session=True)


def check_installed() -> None:
    """Raise RotBenchError unless the packages of a local stack are installed."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise RotBenchError(
            f"a local stack needs packages that are not installed: {', '.join(missing)}",
            remedy="run: pip install 'rotbench[local]'",
        )


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "deploy.local", *arguments]


def environment() -> dict[str, str]:
    """Ours, with the folder that this package was found in, so that the command works from any folder."""
    root = str(Path(__file__).parents[2])
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}
