"""How is a stored run or sweep shown? Rows and what belongs to them, by a fixed number of queries per answer."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlalchemy.orm import Session

from api.derived import below_floor, cost_of, stuck
from api.schemas import CostEstimate, Divergence, RunRead, SizeRead, SweepRead, SweepSummary
from rotrnn_core.config import TASKS, RunConfig
from rotrnn_core.cost import Match, cost
from store import attempts, data_waits, metrics, paces, sweeps
from store.runs import NewRun
from store.status import Priority, Status
from store.tables import RunRow, SweepRow

LATEST = ("train_loss", "validation_accuracy", "test_accuracy")
VALIDATION_LOSS = "validation_loss"
_APART = {"confusion"}
"""Columns that are read for one run at a time, since they are long."""


def run_reads(session: Session, rows: Sequence[RunRow], lease_s: float = 60.0) -> list[RunRead]:
    """The runs in the order given; a worker that has not beaten for `lease_s` counts as gone."""
    begun = [row.id for row in rows if row.attempt > 0]
    latest = metrics.latest(session, begun, (*LATEST, VALIDATION_LOSS)) if begun else {}
    seconds_left = attempts.seconds_left(session, begun) if begun else {}
    waits = data_waits.reasons(session, rows, lease_s)
    return [_run_read(row, latest.get(row.id, {}), seconds_left.get(row.id), waits.get(row.id)) for row in rows]


def run_read(session: Session, row: RunRow, lease_s: float = 60.0) -> RunRead:
    """One run, with all that is known of it."""
    (shown,) = run_reads(session, [row], lease_s)
    return shown.model_copy(update={"confusion": row.confusion}) if row.attempt > 0 else shown


def sweep_summaries(session: Session, rows: Sequence[SweepRow]) -> list[SweepSummary]:
    """The sweeps in the order given."""
    ids = [row.id for row in rows]
    counts = sweeps.counts(session, ids)
    left = paces.seconds_left(session, ids)
    return [
        SweepSummary(
            id=row.id,
            name=row.name,
            created_at=row.created_at,
            config=row.config,
            grid=row.grid,
            total=row.total,
            counts={status.value: number for status, number in counts[row.id].items()},
            reused=row.reused,
            combinations=row.combinations,
            match=cast("Match", row.match),
            filled=counts[row.id].get(Status.SUCCEEDED, 0) + counts[row.id].get(Status.DIVERGED, 0),
            seconds_left=left.get(row.id),
        )
        for row in rows
    ]


def sweep_read(session: Session, row: SweepRow) -> SweepRead:
    """One sweep with its runs."""
    (summary,) = sweep_summaries(session, [row])
    return SweepRead(**summary.model_dump(), runs=sweeps.run_ids(session, [row.id])[row.id])


def sizes(new_runs: Sequence[NewRun], most: int = 100) -> list[SizeRead]:
    """The distinct networks of runs to be made, with what each costs."""
    networks: dict[str, SizeRead] = {}
    for new in new_runs:
        model = new.config["model"]
        key = f"{new.task} {model}"
        if key not in networks and len(networks) < most:
            found = cost(RunConfig.part_from_dict("model", model), TASKS[new.task])
            networks[key] = SizeRead(
                cell=new.cell,
                task=new.task,
                depth=new.depth,
                d_model=model["d_model"],
                d_state=model["d_state"],
                parameters=found.parameters,
                state_size=found.state_size,
                flops_per_token=found.flops_per_token,
            )
    return list(networks.values())


def cost_estimate(session: Session, new_runs: Sequence[NewRun]) -> CostEstimate:
    """What the runs would take, by the pace of past runs of the same networks."""
    past = paces.past(session, sorted({(run.task, run.cell, run.depth) for run in new_runs}))
    pace_of = {_like(pace.task, pace.model, pace.batch_size): pace.seconds / pace.steps for pace in past}
    known = [
        pace_of[like] * run.total_steps
        for run in new_runs
        if (like := _like(run.task, run.config["model"], run.config["training"]["batch_size"])) in pace_of
    ]
    return CostEstimate(
        runs=len(new_runs),
        steps=sum(run.total_steps for run in new_runs),
        parameters=max((size.parameters for size in sizes(new_runs)), default=0),
        device_seconds=sum(known) if known else None,
        estimated_runs=len(known),
    )


def _like(task: str, model: Mapping[str, Any], batch_size: int) -> str:
    return json.dumps([task, model, batch_size], sort_keys=True)


def priority_name(priority: int) -> str:
    """The named level that a stored priority belongs to."""
    return max((p for p in Priority if p <= priority), default=Priority.LOW).name.lower()


def _run_read(row: RunRow, latest: dict[str, float], seconds_left: float | None, waits_for: str | None) -> RunRead:
    needs = cost_of(row)
    divergence = None
    if row.divergence_step is not None:
        divergence = Divergence(step=row.divergence_step, layer=row.divergence_layer, kind=str(row.divergence_kind))
    return RunRead.model_validate(
        {name: getattr(row, name) for name in RunRead.model_fields.keys() - _APART if hasattr(row, name)}
        | {
            "priority": priority_name(row.priority),
            "divergence": divergence,
            "latest": {key: value for key, value in latest.items() if key in LATEST},
            "stuck": stuck(row, latest.get(VALIDATION_LOSS)),
            "below_floor": below_floor(row, latest.get("test_accuracy")),
            "state_size": needs.state_size if needs else None,
            "flops_per_token": needs.flops_per_token if needs else None,
            "seconds_left": seconds_left,
            "waits_for": waits_for,
        }
    )
