"""How did it end? A line per run, the runs without a result by name, and the exit code."""

from typing import NoReturn

import typer
from rich.text import Text

from client.api import RotBench
from client.cli.output import err, json_out, out, status_text
from client.cli.watching import outcome, run_label, run_words, sweep_words
from client.results import Run, Sweep

DONE, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130
RESULTS = ("succeeded", "diverged")
"""A divergence is a result: it says something about the model."""


def run_line(run: Run) -> Text:
    """One line about a run: what it is and how it stands."""
    return Text(f"Run {run.id}: {run_label(run)}, ").append_text(status_text(run.status, outcome(run)))


def sweep_line(sweep: Sweep) -> Text:
    """One line about a sweep: how many runs it has and how they stand."""
    name = f" ({sweep.name})" if sweep.name else ""
    return Text(f"Sweep {sweep.id}{name}: {sweep_words(sweep)}")


def end_with_run(run: Run, *, as_json: bool) -> NoReturn:
    """Say how a run ended and exit: 0 for a result, else 1."""
    if as_json:
        json_out(run)
    else:
        out.print(run_line(run), soft_wrap=True)
        out.print(Text(run_words(run)), soft_wrap=True)
    raise typer.Exit(DONE if run.status in RESULTS else FAILED)


def end_with_sweep(client: RotBench, sweep: Sweep, *, as_json: bool) -> NoReturn:
    """Say how a sweep ended, name what did not succeed, and exit: 0 when each run has a result, else 1."""
    if as_json:
        json_out(sweep)
    else:
        out.print(sweep_line(sweep), soft_wrap=True)
        name_the_unsuccessful(client, sweep)
    raise typer.Exit(DONE if all_have_results(sweep) else FAILED)


def name_the_unsuccessful(client: RotBench, sweep: Sweep) -> None:
    """Name each run that diverged, failed or was cancelled, with its reason, on stderr."""
    if sweep.counts.get("succeeded", 0) == sweep.total:
        return
    for run in client.runs(sweep_id=sweep.id, status=["diverged", "failed", "cancelled"], limit=200):
        err.print(run_line(run), soft_wrap=True)


def all_have_results(sweep: Sweep) -> bool:
    """Whether every run succeeded or diverged."""
    return sum(sweep.counts.get(status, 0) for status in RESULTS) == sweep.total
