"""What does RotBench do, from nothing to the figure? `rotbench demo`: a stack, a comparison, numbers and a picture."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer

from client.api import RotBench
from client.cli import stack
from client.cli.compare import Exported, draw, write_runs, written_to
from client.cli.ending import FAILED, INTERRUPTED, all_have_results, name_the_unsuccessful
from client.cli.formats import duration, plural
from client.cli.output import note, say
from client.cli.reporting import show_report
from client.cli.watching import patiently, watch_sweep
from client.connection import STACK_FILE, Stack, read_stack
from client.errors import RotBenchError
from client.results import Sweep
from client.tables import write_stability
from rotrnn_core.recipes import demo_sweep

OutputOption = Annotated[
    Path | None,
    typer.Option("--output", metavar="DIR", help="Where figure and data go; else demo/ in the data folder."),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo)


def demo(data_dir: stack.DataDirOption = stack.DATA_DIR, output: OutputOption = None) -> None:
    """Compare RotRNN and LRU here, from nothing.

    Starts a stack, trains both over several depths and seeds, prints the numbers with intervals and draws the figure.
    Runs that exist already are reused, so that a demo that was interrupted goes on where it stopped. The stack goes on
    running in the background; `rotbench down` ends it.
    """
    begun = time.monotonic()
    output = output or data_dir / "demo"
    with _own_stack(data_dir) as local, RotBench(local.api_url, local.token()) as client:
        sweep = _submit(client)
        if local.dashboard_url:
            note(f"Dashboard: {local.dashboard_url}")
        sweep = watch_sweep(client, sweep.id)
        note(f"{plural(sweep.total, 'run')} ended; {duration(time.monotonic() - begun)} since the start")
        name_the_unsuccessful(client, sweep)
        stability = client.stability(sweep_id=sweep.id)
        show_report(stability)
        _write_data(client, sweep, output)
        with written_to(str(output / "stability.csv")) as stream:
            write_stability(stream, stability)
        figure = output / "stability.png"
        draw(client, figure, sweep_id=sweep.id)
        _say_where(local, output, figure, data_dir)
    if not all_have_results(sweep):
        raise typer.Exit(FAILED)


@contextmanager
def _own_stack(data_dir: Path) -> Iterator[Stack]:
    """The stack of a data folder, started if none runs; ended again when the demo does not come to its end."""
    stack.check_installed()
    started = stack.running(data_dir) is None
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        if started:
            note(f"Starting a stack in {data_dir}")
            stack.start(data_dir)
        else:
            note(f"Using the stack that runs in {data_dir}")
        described = read_stack(data_dir / STACK_FILE)
        if described is None:
            raise RotBenchError(f"{data_dir / STACK_FILE} cannot be read", remedy="run `rotbench down`, then try again")
        yield described
    except BaseException as error:
        if started and not isinstance(error, typer.Exit):
            stack.stop(data_dir)
        if isinstance(error, KeyboardInterrupt):
            _end_interrupted(data_dir, started)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _submit(client: RotBench) -> Sweep:
    wanted = demo_sweep()
    sweep = patiently(lambda: client.sweep(wanted["config"], wanted["grid"], name=wanted["name"], dedupe="reuse"))
    for run in client.runs(sweep_id=sweep.id, status="paused", limit=200):
        client.resume(run.id)
    reused = f", {sweep.reused:,} of which exist already" if sweep.reused else ""
    note(f"Sweep {sweep.id}: {plural(sweep.total, 'run')}{reused}")
    return sweep


def _write_data(client: RotBench, sweep: Sweep, output: Path) -> None:
    for what, name in ((Exported.RUNS, "runs.csv"), (Exported.HIDDEN_NORMS, "hidden_norms.csv")):
        with written_to(str(output / name)) as stream:
            write_runs(client, what, client.runs(sweep_id=sweep.id, limit=200), stream)


def _say_where(local: Stack, output: Path, figure: Path, data_dir: Path) -> None:
    say()
    say(f"Figure     {figure}")
    say(f"Data       {output / 'runs.csv'}, {output / 'hidden_norms.csv'}, {output / 'stability.csv'}")
    if local.dashboard_url:
        say(f"Dashboard  {local.dashboard_url}")
    say(f"API        {local.api_url} (documentation at /docs; token in {local.token_file})")
    folder = "" if data_dir == stack.DATA_DIR else f" --data-dir {data_dir}"
    say(f"The stack goes on running; `rotbench down{folder}` ends it.")


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _end_interrupted(data_dir: Path, started: bool) -> NoReturn:
    if started:
        note(f"Interrupted. The stack is stopped, its data is kept in {data_dir}; the demo goes on when started again.")
    else:
        note("Interrupted. The stack was running before and goes on with the runs; `rotbench runs` lists them.")
    raise typer.Exit(INTERRUPTED)
