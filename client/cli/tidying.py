"""How is the database kept small? `rotbench gc` deletes runs that ended long ago, once one has seen which."""

from enum import StrEnum
from typing import Annotated

import typer

from client.cli.asking import bench
from client.cli.formats import plural, size
from client.cli.output import JsonOption, json_out, say
from client.results import Purged


class Ended(StrEnum):
    """How a run has ended."""

    SUCCEEDED = "succeeded"
    DIVERGED = "diverged"
    FAILED = "failed"
    CANCELLED = "cancelled"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("gc")(gc)


def gc(
    context: typer.Context,
    days: Annotated[float, typer.Option("--days", metavar="N", min=0, help="Runs that ended longer ago.")] = 30.0,
    status: Annotated[
        list[Ended] | None, typer.Option("--status", help="How they ended; failed and cancelled without it.")
    ] = None,
    really: Annotated[bool, typer.Option("--delete", help="Delete them; without it they are counted only.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Count the runs that ended long ago, and with --delete delete them with all that they measured."""
    client = bench(context)
    statuses = [each.value for each in status] if status else None
    done = client.collect_garbage(older_than_days=days, status=statuses, dry_run=not really)
    total = done
    while really and done.more and done.runs:
        done = client.collect_garbage(older_than_days=days, status=statuses, dry_run=False)
        total = total.plus(done)
    if as_json:
        json_out(total)
        return
    say(f"{'Deleted' if really else 'Would delete'} {_words(total)}")
    if not really and total.runs:
        say("Nothing was deleted; --delete does it.")


def _words(purged: Purged) -> str:
    least = " or more" if purged.more else ""
    of_them = f"{purged.points:,} points, {plural(purged.checkpoints, 'checkpoint')}, {size(purged.checkpoint_bytes)}"
    return f"{plural(purged.runs, 'run')}{least}: {of_them}."
