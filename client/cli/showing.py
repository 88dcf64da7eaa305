"""What is there to know about one run or sweep? `rotbench show`."""

from collections.abc import Iterator
from typing import Annotated

import typer

from client.api import RotBench
from client.cli.asking import bench, find_run_or_sweep
from client.cli.ending import name_the_unsuccessful
from client.cli.formats import ABSENT, ago, duration, number, percent, plural, size
from client.cli.output import JsonOption, json_out, pairs, say, status_text
from client.cli.watching import outcome, sweep_words
from client.results import Attempt, LogLine, Run, Sweep
from client.wire import plain, to_json

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="An id of a run or sweep, or its first characters.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("show")(show)


def show(
    context: typer.Context,
    identity: IdArgument,
    with_config: Annotated[bool, typer.Option("--config", help="The complete configuration as well.")] = False,
    with_log: Annotated[bool, typer.Option("--log", help="A run's log as well.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show one run or sweep in full."""
    client = bench(context)
    found = find_run_or_sweep(client, identity)
    if isinstance(found, Sweep):
        _show_sweep(client, found, with_config=with_config, as_json=as_json)
        return
    attempts, checkpoints, history = client.attempts(found.id), client.checkpoints(found.id), client.history(found.id)
    log = tuple(_log_lines(client, found.id)) if with_log else None
    if as_json:
        answer: dict[str, object] = {"run": found, "attempts": attempts, "checkpoints": checkpoints, "history": history}
        json_out(answer if log is None else {**answer, "log": log})
        return
    _show_run(found)
    for attempt in attempts:
        say(_attempt_line(attempt))
    for checkpoint in checkpoints:
        say(f"checkpoint of step {checkpoint.step:,}, {size(checkpoint.size_bytes)}: {checkpoint.path}")
    for event in history:
        say(f"{event.at:%Y-%m-%d %H:%M:%S} {event.kind.replace('_', ' ')}: {event.message}")
    if with_config:
        say(to_json(found.config))
    for line in log or ():
        say(f"{line.at:%Y-%m-%d %H:%M:%S} {line.level:<7} {line.message}")


def _show_run(run: Run) -> None:
    left = "" if run.seconds_left is None else f", {duration(run.seconds_left)} left"
    pairs(
        [
            ("run", run.id),
            *([("name", run.name)] if run.name else []),
            *([("sweep", run.sweep_id)] if run.sweep_id else []),
            ("status", status_text(run.status, outcome(run))),
            ("progress", f"{run.step:,} of {plural(run.total_steps, 'step')}{left}"),
            ("task", run.task),
            ("model", f"{run.cell}, {plural(run.depth, 'layer')}, seed {run.seed}"),
            *((key.replace("_", " "), _latest(key, value)) for key, value in run.latest.items()),
            ("parameters", ABSENT if run.parameter_count is None else f"{run.parameter_count:,}"),
            ("state size", ABSENT if run.state_size is None else f"{run.state_size:,}"),
            ("flops per token", ABSENT if run.flops_per_token is None else f"{run.flops_per_token:,}"),
            *([("below floor", "yes: a simple method tests better (`rotbench tasks`)")] if run.below_floor else []),
            *([("stuck", "yes: the loss is still that of a guess")] if run.stuck else []),
            ("device", run.device or ABSENT),
            ("priority", run.priority),
            ("created", ago(run.created_at)),
            ("started", ago(run.started_at)),
            ("finished", ago(run.finished_at)),
        ]
    )


def _show_sweep(client: RotBench, sweep: Sweep, *, with_config: bool, as_json: bool) -> None:
    if as_json:
        json_out({"sweep": sweep})
        return
    pairs(
        [
            ("sweep", sweep.id),
            *([("name", sweep.name)] if sweep.name else []),
            ("runs", f"{sweep.total:,}" + (f", {sweep.reused:,} of them reused" if sweep.reused else "")),
            ("state", sweep_words(sweep)),
            ("created", ago(sweep.created_at)),
            *([("equal", sweep.match)] if sweep.match != "d_state" else []),
            *((field, ", ".join(map(_short, values))) for field, values in sweep.grid.items()),
        ]
    )
    if with_config:
        say(to_json(sweep.config))
    if not sweep.active:
        name_the_unsuccessful(client, sweep)


def _attempt_line(attempt: Attempt) -> str:
    resumed = f", resumed from step {attempt.resumed_from_step:,}" if attempt.resumed_from_step else ""
    ended = f": {attempt.outcome}" if attempt.outcome else ""
    why = f" ({attempt.reason})" if attempt.reason else ""
    return f"attempt {attempt.number} on {attempt.host or ABSENT}, {attempt.device or ABSENT}{resumed}{ended}{why}"


def _latest(key: str, value: float) -> str:
    return percent(value) if key.endswith("accuracy") else number(value)


def _short(value: object) -> str:
    """A grid's value in few words: an object by its fields."""
    if isinstance(value, dict):
        return " ".join(str(field) for field in value.values())
    return str(plain(value))


def _log_lines(client: RotBench, run_id: str) -> Iterator[LogLine]:
    after: str | None = None
    while True:
        page = client.logs(run_id, after=after, limit=1000)
        yield from page.items
        if not page.items or page.next_cursor in (None, after):
            return
        after = page.next_cursor
