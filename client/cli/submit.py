"""How is training asked for? `rotbench submit` starts one run, `rotbench sweep` a grid of them."""

from enum import StrEnum
from typing import Annotated

import typer

from client.cli.asking import bench
from client.cli.ending import end_with_run, end_with_sweep, run_line
from client.cli.formats import duration, plural
from client.cli.output import Column, JsonOption, json_out, note, out, pairs, say, table
from client.cli.watching import watch_run, watch_sweep
from client.cli.wishes import (
    ConfigOption,
    GridOption,
    NameOption,
    PriorityOption,
    RecipeOption,
    SetOption,
    SweepFile,
    configuration,
    grid,
    sweep_file,
)
from client.results import CostEstimate, SweepPlan
from client.wire import to_json

ReuseOption = Annotated[bool, typer.Option("--reuse", help="Take runs that exist with the same configuration.")]
WatchOption = Annotated[bool, typer.Option("--watch", help="Stay and show progress until the end.")]


class Match(StrEnum):
    """What the cells of a sweep have in common with its first."""

    D_STATE = "d_state"
    PARAMETERS = "parameters"
    FLOPS = "flops"


MatchOption = Annotated[
    Match,
    typer.Option(
        "--match",
        metavar="d_state|parameters|flops",
        help="What cells have in common with the first one; their d_state follows from it.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("submit")(submit)
    app.command("sweep")(sweep)


def submit(
    context: typer.Context,
    recipe: RecipeOption = None,
    config: ConfigOption = None,
    settings: SetOption = None,
    seed: Annotated[int | None, typer.Option("--seed", metavar="N", help="training.seed.")] = None,
    name: NameOption = None,
    priority: PriorityOption = None,
    reuse: ReuseOption = False,
    watch: WatchOption = False,
    as_json: JsonOption = False,
) -> None:
    """Put one run in the queue."""
    client = bench(context)
    wanted = configuration(client, recipe, config, settings or [], seed)
    run = client.submit(wanted, name=name, priority=priority, dedupe="reuse" if reuse else None)
    if watch:
        if not as_json:
            out.print(run_line(run), soft_wrap=True)
        end_with_run(watch_run(client, run.id), as_json=as_json)
    if as_json:
        json_out(run)
    else:
        out.print(run_line(run), soft_wrap=True)
        if run.waits_for:
            note(f"Waiting: {run.waits_for}.")
        note(f"`rotbench watch {run.id[:8]}` shows its progress.")


def sweep(
    context: typer.Context,
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE.json]", help="Recipe, settings and grid, as in the folder sweeps.")
    ] = None,
    recipe: RecipeOption = None,
    config: ConfigOption = None,
    settings: SetOption = None,
    axes: GridOption = None,
    seed: Annotated[str | None, typer.Option("--seed", metavar="SEEDS", help="Seeds such as 0,1,2 or 0-4.")] = None,
    name: NameOption = None,
    priority: PriorityOption = None,
    reuse: ReuseOption = False,
    match: MatchOption = Match.D_STATE,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and count; start nothing.")] = False,
    watch: WatchOption = False,
    as_json: JsonOption = False,
) -> None:
    """Start one run for every combination of a grid. Options win over what a file says."""
    given = SweepFile() if file is None else sweep_file(file)
    wanted = {**given.grid, **grid(axes or [], seed)}
    if not wanted:
        raise typer.BadParameter("a sweep needs a file, or at least one --grid or --seed")
    client = bench(context)
    base = configuration(client, recipe or given.recipe, config, [*given.settings, *(settings or [])], None)
    name = name or given.name
    if dry_run:
        dedupe = "reuse" if reuse else None
        _show_plan(client.plan_sweep(base, wanted, match=match.value, dedupe=dedupe), as_json=as_json)
        return
    started = client.sweep(
        base, wanted, name=name, priority=priority, dedupe="reuse" if reuse else None, match=match.value
    )
    if not as_json:
        reused = f", {started.reused:,} of them reused" if started.reused else ""
        say(f"Sweep {started.id}: {plural(started.total, 'run')}{reused}")
    if watch:
        end_with_sweep(client, watch_sweep(client, started.id), as_json=as_json)
    if as_json:
        json_out(started)
    else:
        note(f"`rotbench watch {started.id[:8]}` shows its progress.")


def _show_cost(cost: CostEstimate) -> None:
    rows = [("new runs", f"{cost.runs:,}"), ("their steps", f"{cost.steps:,}")]
    if cost.device_seconds is not None:
        known = "" if cost.estimated_runs == cost.runs else f", for {cost.estimated_runs:,} of them"
        rows.append(("one device", f"{duration(cost.device_seconds)} by past runs{known}"))
    pairs(rows)


def _show_plan(plan: SweepPlan, *, as_json: bool) -> None:
    if as_json:
        json_out(plan)
        return
    pairs(
        [
            ("runs", f"{plan.total:,}"),
            ("exist already", f"{plan.duplicates:,} (--reuse takes them)" if plan.duplicates else "0"),
            *([("equal cells", f"{plan.merged:,} make no run of their own")] if plan.merged else []),
        ]
    )
    _show_sizes(plan)
    if plan.cost is not None:
        _show_cost(plan.cost)
    if plan.configs_preview:
        say("first configuration:")
        say(to_json(plan.configs_preview[0]))
    note("Nothing was started.")


def _show_sizes(plan: SweepPlan) -> None:
    numbers = ("d_state", "parameters", "state size", "flops per token")
    with_task = len({size.task for size in plan.sizes}) > 1
    rows = [
        [
            *([size.task] if with_task else []),
            size.cell,
            str(size.depth),
            *(f"{value:,}" for value in (size.d_state, size.parameters, size.state_size, size.flops_per_token)),
        ]
        for size in plan.sizes
    ]
    leading = [*([Column("task")] if with_task else []), Column("cell"), Column("depth", right=True)]
    table([*leading, *(Column(title, right=True) for title in numbers)], rows)
