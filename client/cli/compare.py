"""How do the cells compare, and how does one get at the numbers? `rotbench compare` and `rotbench export`."""

import contextlib
import os
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from client.api import RotBench
from client.cli.asking import bench, find_sweep
from client.cli.leaderboard import show_published
from client.cli.output import JsonOption, json_out, note
from client.cli.reporting import show_report
from client.errors import RotBenchError
from client.results import Run
from client.tables import (
    hidden_norms_sheet,
    metrics_sheet,
    runs_sheet,
    write_hidden_norms,
    write_metrics,
    write_run,
    write_stability,
)
from client.wire import to_json

SweepOption = Annotated[str | None, typer.Option("--sweep", metavar="ID", help="Only runs of this sweep.")]
TaskOption = Annotated[str | None, typer.Option("--task", metavar="TASK", help="Only this task.")]
CellOption = Annotated[
    list[str] | None, typer.Option("--cell", metavar="LABEL", help="Only this cell's label, such as lru-tied.")
]
DepthOption = Annotated[list[int] | None, typer.Option("--depth", metavar="N", help="Only networks of so many layers.")]


class Statistic(StrEnum):
    """What the figure shows."""

    RELATIVE = "relative"
    WHOLE = "whole"
    PER_HEAD = "per_head"


class FileKind(StrEnum):
    """What kind of file is written."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


class Exported(StrEnum):
    """What is written."""

    RUNS = "runs"
    METRICS = "metrics"
    HIDDEN_NORMS = "hidden-norms"
    STABILITY = "stability"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("compare")(compare)
    app.command("export")(export)


def compare(
    context: typer.Context,
    sweep: SweepOption = None,
    task: TaskOption = None,
    cell: CellOption = None,
    depth: DepthOption = None,
    figure: Annotated[
        Path | None, typer.Option("--figure", metavar="FILE.png", help="Draw the hidden norms over training as well.")
    ] = None,
    statistic: Annotated[
        Statistic, typer.Option("--statistic", metavar="NAME", help="The figure's: relative, whole or per_head.")
    ] = Statistic.RELATIVE,
    as_json: JsonOption = False,
) -> None:
    """Compare the stability of hidden norms. Accuracy and spreads with intervals, and the verdict on the claim."""
    client = bench(context)
    sweep_id = find_sweep(client, sweep).id if sweep else None
    stability = client.stability(sweep_id=sweep_id, task=task, cell=cell, depth=depth)
    if as_json:
        json_out(stability)
    else:
        show_report(stability)
        show_published(stability, client.tasks())
    if figure is not None:
        draw(client, figure, statistic=statistic, sweep_id=sweep_id, task=task, cell=cell, depth=depth)
        note(f"Figure: {figure}")


def draw(
    client: RotBench,
    path: Path,
    *,
    statistic: Statistic = Statistic.RELATIVE,
    sweep_id: str | None = None,
    task: str | None = None,
    cell: list[str] | None = None,
    depth: list[int] | None = None,
) -> None:
    """Draw the stability figure of the chosen runs into a PNG file.

    Raises:
        RotBenchError: There is nothing to draw, or matplotlib is not installed.
    """
    try:
        from client.figure import stability_figure, write_png
    except ImportError as error:
        raise RotBenchError(
            f"a figure needs {error.name}, which is not installed", remedy="run: pip install 'rotbench[local]'"
        ) from error
    comparison = client.compare_hidden_norms(
        statistic=statistic.value, sweep_id=sweep_id, task=task, cell=cell, depth=depth, runs=True
    )
    titles = {known.name: known.title for known in client.tasks()}
    names = {group.task for group in comparison.groups}
    try:
        drawn = stability_figure(comparison, task_title=titles.get(next(iter(names))) if len(names) == 1 else None)
    except ValueError as error:
        remedy = "choose one with --task" if len(names) > 1 else "wait until a run has measured something"
        raise RotBenchError(str(error), remedy=remedy) from error
    write_png(drawn, path)


def export(
    context: typer.Context,
    what: Annotated[Exported, typer.Argument(metavar="WHAT", help="runs, metrics, hidden-norms or stability.")],
    sweep: SweepOption = None,
    task: TaskOption = None,
    cell: CellOption = None,
    depth: DepthOption = None,
    kind: Annotated[
        FileKind, typer.Option("--format", "-f", help="csv, json (an object per line) or parquet; stability is csv.")
    ] = FileKind.CSV,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="A file, or - for stdout.")] = "-",
) -> None:
    """Write everything that was measured, of all runs or of those chosen, unthinned.

    Beside a file lies FILE.provenance.json: the filters, the version of the code, and the time.
    """
    client = bench(context)
    sweep_id = find_sweep(client, sweep).id if sweep else None
    chosen: dict[str, Any] = {"sweep_id": sweep_id, "task": task, "cell": cell, "depth": depth}
    with written_to(output) as stream:
        if what is Exported.STABILITY:
            write_stability(stream, client.stability(**chosen))
            return
        provenance = client.export(what.value, kind.value, stream.buffer, **chosen)
    if output != "-":
        with written_to(f"{output}.provenance.json") as stream:
            stream.write(to_json(provenance) + "\n")


def write_runs(client: RotBench, what: Exported, runs: Iterator[Run], stream: TextIO) -> None:
    """Write what was measured in these runs as CSV, run after run."""
    if what is Exported.RUNS:
        sheet = runs_sheet(stream)
        for run in runs:
            write_run(sheet, run)
    elif what is Exported.METRICS:
        sheet = metrics_sheet(stream)
        for run in runs:
            write_metrics(sheet, run, client.metrics(run.id).values())
    else:
        sheet = hidden_norms_sheet(stream)
        for run in runs:
            write_hidden_norms(sheet, run, client.hidden_norms(run.id))


@contextlib.contextmanager
def written_to(output: str) -> Iterator[TextIO]:
    """Stdout for -, else a file that appears when it is complete."""
    if output == "-":
        yield sys.stdout
        return
    path = Path(output)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("w", encoding="utf-8", newline="") as stream:
            yield stream
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
