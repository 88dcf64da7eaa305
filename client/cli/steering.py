"""How is a run followed and steered? watch, cancel, pause, resume, extend."""

from collections.abc import Callable
from typing import Annotated

import typer

from client.api import RotBench
from client.cli.asking import bench, find_run_or_sweep, find_sweep
from client.cli.ending import end_with_run, end_with_sweep, run_line, sweep_line
from client.cli.output import JsonOption, json_out, out
from client.cli.showing import IdArgument
from client.cli.watching import tell_events, watch_run, watch_sweep
from client.results import Run, Sweep

AnyArgument = Annotated[
    list[str], typer.Argument(metavar="ID...", help="Ids of runs or sweeps, or their first characters.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (watch, cancel, pause, resume, extend):
        app.command(command.__name__)(command)


def watch(
    context: typer.Context,
    identity: IdArgument,
    events: Annotated[bool, typer.Option("--events", help="A line for each thing that happens to a run.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show progress until the end. The exit code is 1 when a run failed or was cancelled."""
    client = bench(context)
    found = find_run_or_sweep(client, identity)
    if events:
        if isinstance(found, Sweep):
            raise typer.BadParameter("only a run has events, and this is a sweep; leave --events out")
        tell_events(client, found.id)
        end_with_run(client.run(found.id), as_json=as_json)
    if isinstance(found, Sweep):
        end_with_sweep(client, watch_sweep(client, found.id), as_json=as_json)
    end_with_run(watch_run(client, found.id), as_json=as_json)


def cancel(context: typer.Context, identities: AnyArgument, as_json: JsonOption = False) -> None:
    """Cancel runs, or every run of a sweep."""
    client = bench(context)
    _tell(_changed(client, client.cancel, client.cancel_sweep, identities), as_json)


def pause(context: typer.Context, identities: AnyArgument, as_json: JsonOption = False) -> None:
    """Pause runs, or every run of a sweep. They stop with a checkpoint and wait."""
    client = bench(context)
    _tell(_changed(client, client.pause, client.pause_sweep, identities), as_json)


def resume(context: typer.Context, identities: AnyArgument, as_json: JsonOption = False) -> None:
    """Queue paused, failed or cancelled runs again, or the paused ones of a sweep. They go on from a checkpoint."""
    client = bench(context)
    _tell(_changed(client, client.resume, client.resume_sweep, identities), as_json)


def extend(
    context: typer.Context,
    sweep: IdArgument,
    seeds: Annotated[list[int], typer.Option("--seed", metavar="N", help="A further seed; may be given often.")],
    as_json: JsonOption = False,
) -> None:
    """Train every cell of a sweep with further seeds."""
    client = bench(context)
    _tell([client.extend_sweep(find_sweep(client, sweep).id, seeds)], as_json)


def _changed(
    client: RotBench,
    change: Callable[[str], Run],
    change_sweep: Callable[[str], Sweep],
    identities: list[str],
) -> list[Run | Sweep]:
    found = [find_run_or_sweep(client, identity) for identity in identities]
    return [change_sweep(one.id) if isinstance(one, Sweep) else change(one.id) for one in found]


def _tell(changed: list[Run | Sweep], as_json: bool) -> None:
    if as_json:
        json_out({"items": changed})
        return
    for one in changed:
        out.print(sweep_line(one) if isinstance(one, Sweep) else run_line(one), soft_wrap=True)
