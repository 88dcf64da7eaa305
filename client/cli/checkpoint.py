"""How does a trained network come home? `rotbench checkpoint` writes one into a file and checks its sum."""

from pathlib import Path
from typing import Annotated

import typer

from client.cli.asking import bench, find_run
from client.cli.formats import size
from client.cli.output import JsonOption, json_out, say
from client.cli.showing import IdArgument
from client.errors import RotBenchError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("checkpoint")(checkpoint)


def checkpoint(
    context: typer.Context,
    identity: IdArgument,
    step: Annotated[int | None, typer.Option("--step", metavar="N", min=0, help="Of which; the last without it.")] = (
        None
    ),
    attempt: Annotated[int | None, typer.Option("--attempt", metavar="N", min=1, help="Of which, where several.")] = (
        None
    ),
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to; run-ID-step-N.pt without it.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Download a checkpoint of a run. What lies at FILE is replaced once the whole has come."""
    client = bench(context)
    run = find_run(client, identity)
    kept = [one for one in client.checkpoints(run.id) if step in (None, one.step) and attempt in (None, one.attempt)]
    if not kept:
        raise RotBenchError(
            f"run {run.id} keeps no {'such ' if step is not None or attempt is not None else ''}checkpoint",
            remedy=f"`rotbench show {run.id[:8]}` lists those that are kept",
        )
    chosen = kept[0]
    target = output or Path(f"run-{run.id[:8]}-step-{chosen.step}.pt")
    unfinished = target.with_name(f".{target.name}.partial")
    try:
        with unfinished.open("wb") as file:
            sha256 = client.checkpoint(run.id, chosen.step, file, attempt=chosen.attempt)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
    if as_json:
        json_out({"path": str(target), "checkpoint": chosen})
        return
    say(f"{target}: step {chosen.step:,}, {size(chosen.size_bytes)}, SHA-256 {sha256}")
