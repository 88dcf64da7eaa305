"""Which data are here, and how do more come? `rotbench data`, by `python -m rotrnn_core.tasks` in its own process."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from client.cli.formats import ABSENT, percent
from client.cli.output import Column, JsonOption, json_out, note, pairs, table
from client.cli.stack import environment
from client.errors import RotBenchError

DataDirOption = Annotated[
    Path, typer.Option("--data-dir", metavar="DIR", envvar="ROTBENCH_DATA_DIR", help="Where workers look for data.")
]
TaskArgument = Annotated[str, typer.Argument(metavar="TASK", help="`rotbench data list` names them.")]
DATA_DIR = Path(".rotbench/datasets")

data = typer.Typer(name="data", no_args_is_help=True, rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(data)


@data.callback()
def about() -> None:
    """Bring the data of a task onto this machine, and check them."""


@data.command("list")
def list_data(data_dir: DataDirOption = DATA_DIR, as_json: JsonOption = False) -> None:
    """List the tasks and whether their data are here."""
    found = _ask("list", data_dir)
    if as_json:
        json_out({"items": found})
        return
    columns = (Column("task"), Column("data"), Column("download", 1, right=True), Column("licence", 2))
    rows = [[one["task"], one["state"], _size(one["download_bytes"]), one["licence"]] for one in found]
    table(columns, rows)
    note("`rotbench data fetch TASK` downloads; `rotbench data import TASK PATH` reads official files that you have.")


@data.command("fetch")
def fetch(task: TaskArgument, data_dir: DataDirOption = DATA_DIR, as_json: JsonOption = False) -> None:
    """Download a task's official files, check them and prepare them. Size and licence are told first.

    A download that breaks off goes on where it was when the command is given again.
    """
    _show(_ask("fetch", data_dir, task), as_json=as_json)


@data.command("import")
def import_data(
    task: TaskArgument,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="An archive, or the folder it unpacks to.")],
    data_dir: DataDirOption = DATA_DIR,
    as_json: JsonOption = False,
) -> None:
    """Prepare official files that lie on this machine already. They are read and left as they are."""
    _show(_ask("import", data_dir, task, str(path)), as_json=as_json)


@data.command("verify")
def verify(
    task: Annotated[str | None, typer.Argument(metavar="[TASK]", help="All that is prepared, by default.")] = None,
    data_dir: DataDirOption = DATA_DIR,
    as_json: JsonOption = False,
) -> None:
    """Read every byte of prepared data and hold it against its hashes."""
    _show(_ask("verify", data_dir, *([task] if task else [])), as_json=as_json)


@data.command("prepare")
def prepare(
    task: TaskArgument,
    data_dir: DataDirOption = DATA_DIR,
    seed: Annotated[int, typer.Option("--data-seed", metavar="N", help="Of a task that is generated.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Make what runs read, before the first run asks for it."""
    _show(_ask("prepare", data_dir, task, *(["--data-seed", str(seed)] if seed else [])), as_json=as_json)


@data.command("floor")
def floor(task: TaskArgument, data_dir: DataDirOption = DATA_DIR, as_json: JsonOption = False) -> None:
    """Tell what a network has to beat: the commonest class, and a simple method that looks at no order."""
    found = _ask("floor", data_dir, task)
    if as_json:
        json_out({"items": found})
        return
    for one in found:
        pairs(
            [
                ("task", one["task"]),
                ("commonest class", percent(one["majority"])),
                ("simple method", f"{percent(one['simple'])}, {one['method']}"),
            ]
        )


def _ask(command: str, data_dir: Path, *arguments: str) -> list[dict[str, Any]]:
    """What the tasks say, an object a line; their progress goes to stderr as it comes.

    Raises:
        RotBenchError: They cannot be asked.
    """
    if importlib.util.find_spec("torch") is None:
        raise RotBenchError("data need packages that are not installed", remedy="run: pip install 'rotbench[core]'")
    words = [sys.executable, "-m", "rotrnn_core.tasks", command, "--data-dir", str(data_dir), *arguments]
    asked = subprocess.run(words, env=os.environ | environment(), stdout=subprocess.PIPE, text=True)
    if asked.returncode:
        raise typer.Exit(asked.returncode)
    return [json.loads(line) for line in asked.stdout.splitlines()]


def _show(found: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        json_out({"items": found})
        return
    if not found:
        note("Nothing is prepared.")
    for one in found:
        examples = one["examples"]
        lines = [
            ("task", one["task"]),
            ("examples", ", ".join(f"{size:,} {split}" for split, size in examples.items())),
            ("commonest", ", ".join(f"{share:.3f} {split}" for split, share in one["majority"].items())),
        ]
        if "folder" in one:
            lines += [("folder", one["folder"]), ("from", one["source"]), ("SHA-256", one["content_sha256"])]
        pairs(lines)
        if not one.get("complete", True):
            note("These are not as many examples as the whole release has: set the sizes in a run's task.")


def _size(count: int) -> str:
    return f"{count / 1e6:,.0f} MB" if count else ABSENT
