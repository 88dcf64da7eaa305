"""Which runs and sweeps are there? `rotbench runs` and `rotbench sweeps`, newest first."""

from itertools import islice
from typing import Annotated

import typer

from client.cli.asking import bench, find_sweep
from client.cli.formats import ABSENT, ago, number, percent, plural
from client.cli.output import Cell, Column, JsonOption, json_out, note, out, status_text, table
from client.cli.watching import sweep_words
from client.results import Run

PAGE = 200
Strings = list[str] | None
Numbers = list[int] | None
LimitOption = Annotated[int, typer.Option("--limit", metavar="N", min=1, help="How many.")]
RUN_COLUMNS = (
    Column("id"),
    Column("name", 6),
    Column("status"),
    Column("task", 5),
    Column("cell"),
    Column("depth", right=True),
    Column("seed", right=True),
    Column("parameters", 7, right=True),
    Column("steps", 2, right=True),
    Column("loss", 3, right=True),
    Column("accuracy", 1, right=True),
    Column("created", 4, right=True),
)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("runs")(runs)
    app.command("sweeps")(sweeps)


def runs(
    context: typer.Context,
    status: Annotated[Strings, typer.Option("--status", metavar="STATUS", help="Only runs of this status.")] = None,
    cell: Annotated[
        Strings, typer.Option("--cell", metavar="LABEL", help="Only this cell's label, such as lru-tied.")
    ] = None,
    task: Annotated[Strings, typer.Option("--task", metavar="TASK", help="Only this task.")] = None,
    sweep: Annotated[str | None, typer.Option("--sweep", metavar="ID", help="Only runs of this sweep.")] = None,
    depth: Annotated[Numbers, typer.Option("--depth", metavar="N", help="Only networks of so many layers.")] = None,
    seed: Annotated[Numbers, typer.Option("--seed", metavar="N", help="Only this training seed.")] = None,
    limit: LimitOption = 20,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List runs, newest first."""
    client = bench(context)
    found = client.runs(
        status=status,
        cell=cell,
        task=task,
        sweep_id=find_sweep(client, sweep).id if sweep else None,
        depth=depth,
        seed=seed,
        limit=PAGE if everything else min(limit + 1, PAGE),
    )
    listed = tuple(found if everything else islice(found, limit))
    if as_json:
        json_out({"items": listed})
        return
    if not listed:
        note("No such run. `rotbench submit`, `rotbench sweep` and `rotbench demo` start some.")
        return
    table(RUN_COLUMNS, [_cells(run) for run in listed])
    if not everything and next(found, None) is not None:
        note(f"These are the newest {plural(limit, 'run')}; --all lists every one.")


def sweeps(context: typer.Context, limit: LimitOption = 20, as_json: JsonOption = False) -> None:
    """List sweeps, newest first."""
    listed = tuple(islice(bench(context).sweeps(), limit))
    if as_json:
        json_out({"items": listed})
        return
    if not listed:
        note("No sweep. `rotbench sweep` and `rotbench demo` start some.")
        return
    columns = (Column("id"), Column("name", 2), Column("runs", right=True), Column("state"), Column("created", 1))
    rows: list[list[Cell]] = [
        [identity(sweep.id), sweep.name or ABSENT, f"{sweep.total:,}", sweep_words(sweep), ago(sweep.created_at)]
        for sweep in listed
    ]
    table(columns, rows)


def identity(whole: str) -> str:
    """An id, cut short for a terminal: the commands take its first characters."""
    return whole[:8] if out.is_terminal else whole


def _cells(run: Run) -> list[Cell]:
    accuracy = run.latest.get("test_accuracy", run.latest.get("validation_accuracy"))
    return [
        identity(run.id),
        run.name or ABSENT,
        status_text(run.status),
        run.task,
        run.cell,
        str(run.depth),
        str(run.seed),
        ABSENT if run.parameter_count is None else f"{run.parameter_count:,}",
        f"{run.step:,}/{run.total_steps:,}",
        number(run.latest.get("train_loss")),
        percent(accuracy),
        ago(run.created_at),
    ]
