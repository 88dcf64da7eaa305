"""What is there to train, and who trains it? tasks, models, workers, token."""

from typing import Annotated

import typer

from client.catalogue import Task
from client.cli.asking import bench
from client.cli.formats import ABSENT, ago, duration
from client.cli.output import Column, JsonOption, json_out, note, pairs, prose, say, table
from client.connection import Connection
from client.errors import RotBenchError


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (tasks, models, workers, token):
        app.command(command.__name__)(command)


def tasks(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the data sets."""
    listed = bench(context).tasks()
    if as_json:
        json_out({"items": listed})
        return
    columns = (
        Column("task"),
        Column("title", 4),
        Column("classes", 2, right=True),
        Column("longest", 1, right=True),
        Column("train", right=True),
        Column("validation", 3, right=True),
        Column("test", 3, right=True),
    )
    rows = [
        [
            task.name,
            task.title,
            str(task.classes),
            *(f"{size:,}" for size in (task.longest, task.train_size, task.validation_size, task.test_size)),
        ]
        for task in listed
    ]
    table(columns, rows)
    for task in listed:
        prose(f"{task.name}: {task.summary}{_floor(task)} Licence: {task.licence}.")


def _floor(task: Task) -> str:
    known = [(task.floor_majority, "the commonest class"), (task.floor_simple, task.floor_method)]
    floors = [f"{100 * share:.1f} % ({method})" for share, method in known if share is not None]
    return f" To beat: {', '.join(floors)}." if floors else ""


def models(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the cells with their options, and the recipes."""
    client = bench(context)
    listed, recipes = client.models(), client.recipes()
    if as_json:
        json_out({"models": listed, "recipes": recipes})
        return
    for model in listed:
        prose(f"{model.name}: {model.summary}")
        rows = [
            [f"  {option.name}", option.type, str(option.default), ", ".join(map(str, option.choices or ())) or ABSENT]
            for option in model.options
        ]
        if rows:
            table((Column("  option"), Column("type", 1), Column("default"), Column("choices")), rows)
        say()
    if recipes:
        table(
            (Column("recipe"), Column("title", 1), Column("source", 2), Column("mark", 3)),
            [[recipe.name, recipe.title, recipe.source, recipe.mark] for recipe in recipes],
        )
        note("Marks: S sourced, D derived and checked, U unverified.")


def workers(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the workers by their last beat."""
    listed = bench(context).workers()
    if as_json:
        json_out({"items": listed})
        return
    if not listed:
        note("No worker has reported yet.")
        return
    columns = (
        Column("worker"),
        Column("state"),
        Column("host", 2),
        Column("device", 1),
        Column("run"),
        Column("data", 4),
        Column("memory", 3, right=True),
        Column("last beat", right=True),
        Column("started", 3, right=True),
    )
    rows = [
        [
            worker.id,
            worker.state,
            worker.host,
            worker.device or ABSENT,
            (worker.run_id or ABSENT)[:8],
            ", ".join(worker.data) or ABSENT,
            ABSENT if worker.resident_mib is None else f"{worker.resident_mib:,} MiB",
            f"{duration(worker.beat_age_s)} ago",
            ago(worker.started_at),
        ]
        for worker in listed
    ]
    table(columns, rows)


def token(
    context: typer.Context,
    reveal: Annotated[bool, typer.Option("--reveal", help="Print the token itself, and nothing else.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Say which API and token are in use. The exit code is 1 when the API does not take the token.

    A local stack makes its token at its first start; elsewhere it is a setting of the deployment, ROTBENCH_TOKEN.
    """
    client = bench(context)
    connection = client.connection
    if reveal:
        if connection.token is None:
            raise RotBenchError(f"no token is known for {connection.url}", remedy="set ROTBENCH_TOKEN")
        typer.echo(connection.token)
        return
    try:
        client.tasks()
        refused = None
    except RotBenchError as error:
        refused = error
    if as_json:
        json_out(
            {
                "url": connection.url,
                "url_source": connection.url_source,
                "token": _masked(connection),
                "token_source": connection.token_source,
                "accepted": refused is None,
            }
        )
    else:
        pairs(
            [
                ("API", f"{connection.url} (from {connection.url_source})"),
                ("token", f"{_masked(connection)} (from {connection.token_source})" if connection.token else "none"),
                ("accepted", "yes" if refused is None else "no"),
            ]
        )
    if refused is not None:
        raise refused


def _masked(connection: Connection) -> str | None:
    return None if connection.token is None else f"{connection.token[:4]}..."
