"""How do metrics and survival compare over seeds? Statistics per step, paired differences, and the share not lost."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query

from api.derived import stuck
from api.differences import holm, paired
from api.documentation import problems
from api.fields import CellLabel
from api.grouping import Group, GroupBy, grouped
from api.groups import Curve, OverSeeds, over_seeds
from api.routers.compare import (
    Bootstrap,
    Cells,
    Depths,
    MaxSteps,
    SweepId,
    Tasks,
    check_bootstrap,
    check_numbers,
    chosen_runs,
    warnings_of,
)
from api.routers.series import MetricKey
from api.seeds_schemas import (
    DifferenceRead,
    DifferencesRead,
    MetricComparisonRead,
    MetricGroupRead,
    SurvivalGroupRead,
    SurvivalRead,
)
from api.sessions import SessionDep
from api.survival import Life, survival
from store import metric_arrays, metrics
from store.metric_arrays import Points
from store.runs import Filters
from store.status import TERMINAL, Status
from store.tables import RunRow

router = APIRouter(prefix="/v1/compare", tags=["compare"])


@router.get("/metrics", responses=problems(401, 404), summary="Compare a metric over seeds")
def compare_metrics(
    session: SessionDep,
    task: Tasks,
    cell: Cells,
    depth: Depths,
    group_by: GroupBy,
    key: MetricKey,
    sweep_id: SweepId = None,
    max_steps: MaxSteps = 1_000,
    bootstrap: Bootstrap = False,
) -> MetricComparisonRead:
    """Statistics over all seeds with n and a 95% t interval, per group and step.

    Runs that failed or were cancelled are left out; of runs with equal configuration the newest counts.
    """
    chosen = chosen_runs(session, Filters(task=task, cell=cell, depth=depth, sweep_id=sweep_id))
    points = metric_arrays.read(session, [run.id for run in chosen], key)
    recorded = [run for run in chosen if run.id in points]
    check_bootstrap(bootstrap, (min(max_steps, found.steps.size) for found in points.values()))
    groups = []
    for group in grouped(recorded, group_by):
        curves = [_curve(run, points[run.id]) for run in group.runs]
        groups.append(_metric_group(group, over_seeds(curves, most_steps=max_steps, bootstrap=bootstrap)))
    check_numbers(sum(10 * len(group.steps) for group in groups))
    return MetricComparisonRead(key=key, warnings=list(warnings_of(recorded, group_by)), groups=groups)


@router.get("/differences", responses=problems(401, 404), summary="Paired differences at equal seed and depth")
def compare_differences(
    session: SessionDep,
    task: Tasks,
    cell: Cells,
    depth: Depths,
    sweep_id: SweepId = None,
    key: MetricKey = "test_accuracy",
    reference: Annotated[CellLabel, Query(description="The cell that every other is compared with.")] = "rotrnn",
) -> DifferencesRead:
    """The last value in each cell minus that in the reference cell, with an effect size and p-values.

    Holm's family is the depths of one task and cell, so that no other cell changes it.
    """
    cells = [*cell, reference] if cell else []
    chosen = chosen_runs(session, Filters(task=task, cell=cells, depth=depth, sweep_id=sweep_id))
    last = metrics.last(session, [run.id for run in chosen], key)
    groups = {(g.task, g.cell, g.depth): _by_seed(g, last) for g in grouped(run for run in chosen if run.id in last)}
    rows: list[DifferenceRead] = []
    for of_task, label in sorted({(name, label) for name, label, _ in groups if label != reference}):
        depths = [d for name, other, d in groups if (name, other) == (of_task, label)]
        shared = [d for d in depths if (of_task, reference, d) in groups]
        found = [paired(groups[of_task, label, d], groups[of_task, reference, d]) for d in shared]
        corrected = holm([difference.p for difference in found])
        for at, difference, p_holm in zip(shared, found, corrected, strict=True):
            facts = {"task": of_task, "cell": label, "reference": reference, "depth": at, "p_holm": p_holm}
            rows.append(DifferenceRead.model_validate(vars(difference.value) | vars(difference) | facts))
    return DifferencesRead(key=key, reference=reference, rows=rows)


@router.get("/survival", responses=problems(401, 404), summary="Share of seeds not diverged or stuck")
def compare_survival(
    session: SessionDep, task: Tasks, cell: Cells, depth: Depths, group_by: GroupBy, sweep_id: SweepId = None
) -> SurvivalRead:
    """The share of runs that are neither diverged nor stuck by step, with an interval.

    A diverged run is lost at its first value that is not finite, a stuck one at its last step; a run that has not ended
    counts up to its present step. Runs that failed or were cancelled are left out.
    """
    chosen = chosen_runs(session, Filters(task=task, cell=cell, depth=depth, sweep_id=sweep_id))
    losses = metrics.last(session, [run.id for run in chosen], "validation_loss")
    is_stuck = {run.id for run in chosen if run.status is not Status.DIVERGED and stuck(run, losses.get(run.id))}
    groups = []
    for group in grouped(chosen, group_by):
        lives = [_life(run, run.id in is_stuck) for run in group.runs]
        facts = {
            "diverged": sum(run.status is Status.DIVERGED for run in group.runs),
            "stuck": sum(run.id in is_stuck for run in group.runs),
            "training": sum(run.status not in TERMINAL for run in group.runs),
        }
        groups.append(SurvivalGroupRead.model_validate(_facts(group) | vars(survival(lives)) | facts))
    return SurvivalRead(groups=groups)


def _curve(run: RunRow, found: Points) -> Curve:
    return Curve(run.seed, found.steps, found.values.reshape(-1, 1))


def _life(run: RunRow, is_stuck: bool) -> Life:
    if run.status is Status.DIVERGED:
        return Life(run.divergence_step or 0, lost=True)
    return Life(run.step, lost=is_stuck)


def _by_seed(group: Group, last: Any) -> dict[int, float]:
    """Each seed's value; several runs of one seed count once, by their mean."""
    values: dict[int, list[float]] = {}
    for run in group.runs:
        values.setdefault(run.seed, []).append(last[run.id])
    return {seed: float(np.mean(same)) for seed, same in values.items()}


def _facts(group: Group) -> dict[str, Any]:
    return {
        "task": group.task,
        "cell": group.cell,
        "depth": group.depth,
        "fields": group.fields,
        "seeds": sorted({run.seed for run in group.runs}),
        "run_ids": [run.id for run in group.runs],
    }


def _metric_group(group: Group, found: OverSeeds) -> MetricGroupRead:
    def column(values: Any) -> Sequence[float]:
        return list(values[:, 0].tolist())

    def bound(values: Any) -> list[float | None] | None:
        if values is None:
            return None
        return [value if n >= 2 else None for value, n in zip(column(values), found.n[:, 0], strict=True)]

    measured = {
        name: column(getattr(found, name))
        for name in ("n", "non_finite", "mean", "median", "iqm", "minimum", "maximum")
    }
    bounds = {name: bound(getattr(found, name)) for name in ("low", "high", "bootstrap_low", "bootstrap_high")}
    steps = {"recorded_steps": found.recorded, "steps": found.steps.tolist()}
    return MetricGroupRead.model_validate(_facts(group) | measured | bounds | steps)
