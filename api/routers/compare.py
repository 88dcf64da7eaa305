"""How do cells compare over seeds and depths? Hidden norms per step, and the stability numbers."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Annotated, Any
from uuid import UUID

import numpy as np
from fastapi import APIRouter, Query
from sqlalchemy.orm import Session

from api.comparison_schemas import (
    AccuracyRead,
    ClaimRead,
    HiddenNormComparisonRead,
    HiddenNormGroupRead,
    MeasureRead,
    PairedRead,
    SingleRunRead,
    StabilityRead,
    StabilityRowRead,
)
from api.documentation import problems
from api.fields import CellLabel, TaskName
from api.groups import Curve, OverSeeds, differing_fields, over_seeds
from api.problems import Refusal
from api.routers.runs import Depth
from api.sessions import SessionDep
from rotrnn_core import stability
from rotrnn_core.claim import claim
from rotrnn_core.records import Statistic
from store import hidden_norms, metrics, runs, sweeps
from store.hidden_norms import Trace
from store.runs import Filters
from store.status import Status
from store.tables import RunRow

router = APIRouter(prefix="/v1/compare", tags=["compare"])

MOST_RUNS = 2_000
_ENDED = (Status.SUCCEEDED, Status.DIVERGED)
SweepId = Annotated[UUID | None, Query(description="Only runs that stand in this sweep.")]
Tasks = Annotated[list[TaskName], Query(default_factory=list, description="Any of these.")]
Cells = Annotated[list[CellLabel], Query(default_factory=list, description="Any of these labels.")]
Depths = Annotated[list[Depth], Query(default_factory=list, description="Any of these numbers of layers.")]


@router.get("/hidden-norms", responses=problems(401, 404), summary="Compare hidden norms over seeds")
def compare_hidden_norms(
    session: SessionDep,
    task: Tasks,
    cell: Cells,
    depth: Depths,
    sweep_id: SweepId = None,
    statistic: Annotated[Statistic, Query(description="relative: against the layer before training.")] = "relative",
    layer: Annotated[int | None, Query(ge=0, le=255, description="Only this layer, counted from 0.")] = None,
    with_runs: Annotated[bool, Query(alias="runs", description="With the curve of each run.")] = False,
) -> HiddenNormComparisonRead:
    """Mean over seeds with n and a 95% t interval, per task, cell, depth, layer and step, from all recorded points.

    Runs that failed or were cancelled are left out; of runs with equal configuration the newest counts.
    """
    chosen = _chosen(session, Filters(task=task, cell=cell, depth=depth, sweep_id=sweep_id))
    traces = hidden_norms.traces(session, [run.id for run in chosen], statistic)
    recorded = [run for run in chosen if traces[run.id].steps]
    groups: list[HiddenNormGroupRead] = []
    for _, members in _grouped(recorded):
        curves = [_curve(run, traces[run.id]) for run in members]
        together = over_seeds(curves)
        for index in range(members[0].depth) if layer is None else {layer} & set(range(members[0].depth)):
            single = _singles(members, curves, index) if with_runs else []
            groups.append(_group_read(members, statistic, together, index, single))
    return HiddenNormComparisonRead(statistic=statistic, warnings=list(_warnings(recorded)), groups=groups)


@router.get("/stability", responses=problems(401, 404), summary="Stability as numbers")
def compare_stability(
    session: SessionDep,
    task: Tasks,
    cell: Cells,
    depth: Depths,
    sweep_id: SweepId = None,
) -> StabilityRead:
    """Spreads of the relative norm with intervals over seeds, paired differences, and whether the claim is seen.

    Of runs that succeeded or diverged; what is left out is named in warnings.
    """
    filters = Filters(task=task, cell=cell, depth=depth, sweep_id=sweep_id)
    ended = _chosen(session, replace(filters, status=_ENDED))
    training = [run for run in _chosen(session, filters) if run.status not in _ENDED]
    ids = [run.id for run in ended]
    traces = hidden_norms.traces(session, ids, "relative")
    accuracy = metrics.latest(session, ids, ["test_accuracy"])
    lines = [_stability_trace(run, traces[run.id], accuracy[run.id].get("test_accuracy")) for run in ended]
    report = stability.report(lines)
    warnings = [*_unended(len(training)), *_left_out(report.broken), *_warnings(ended)]
    return StabilityRead(
        tasks=sorted({run.task for run in ended}),
        measures=[MeasureRead.model_validate(measure) for measure in report.measures],
        rows=[StabilityRowRead.model_validate(vars(row) | vars(row.value)) for row in report.rows],
        paired=[
            PairedRead.model_validate(vars(p) | vars(p.difference) | {"difference": p.difference.estimate})
            for p in report.paired
        ],
        claim=ClaimRead.model_validate(claim(lines)),
        accuracy=[AccuracyRead.model_validate(vars(row) | vars(row.value)) for row in report.accuracy],
        warnings=warnings,
    )


def _chosen(session: Session, filters: Filters) -> list[RunRow]:
    if filters.sweep_id is not None:
        sweeps.get(session, filters.sweep_id)
    chosen = runs.comparable(session, filters)
    if len(chosen) > MOST_RUNS:
        raise Refusal(
            422,
            "too-many-runs",
            f"{len(chosen)} runs fit; one comparison takes at most {MOST_RUNS}.",
            field="query",
            value=f"{len(chosen)} runs",
            remedy="narrow it by sweep_id, task, cell or depth",
        )
    return chosen


def _grouped(members: Iterable[RunRow]) -> Iterable[tuple[tuple[str, str, int], list[RunRow]]]:
    def condition(run: RunRow) -> tuple[str, str, int]:
        return run.task, run.cell, run.depth

    ordered = sorted(members, key=lambda run: (*condition(run), run.seed, str(run.id)))
    return ((key, list(group)) for key, group in groupby(ordered, condition))


def _warnings(members: Sequence[RunRow]) -> Iterable[str]:
    for (task, cell, depth), group in _grouped(members):
        title = f"{cell}, depth {depth}, {task}"
        differing = differing_fields([run.config for run in group])
        if differing:
            said = "; ".join(f"{field} ({', '.join(map(str, values))})" for field, values in differing.items())
            yield f"{title}: the {len(group)} runs differ not only in the seed but in {said}."
        elif len({run.seed for run in group}) < len(group):
            yield f"{title}: several runs share a seed; each seed counts once, by the mean of its runs."


def _curve(run: RunRow, trace: Trace) -> Curve:
    return Curve(run.seed, np.asarray(trace.steps, dtype=np.int64), np.asarray(trace.mean, dtype=np.float64))


def _singles(members: Sequence[RunRow], curves: Sequence[Curve], layer: int) -> list[SingleRunRead]:
    return [
        SingleRunRead(
            seed=run.seed,
            run_id=run.id,
            status=run.status,
            steps=curve.steps.tolist(),
            values=curve.values[:, layer].tolist(),
        )
        for run, curve in zip(members, curves, strict=True)
    ]


def _group_read(
    members: Sequence[RunRow], statistic: str, together: OverSeeds, layer: int, single: list[SingleRunRead]
) -> HiddenNormGroupRead:
    first = members[0]
    n = together.n[:, layer]

    def bound(values: Any) -> list[float | None]:
        return [value if enough else None for value, enough in zip(values[:, layer].tolist(), n >= 2, strict=True)]

    return HiddenNormGroupRead(
        task=first.task,
        cell=first.cell,
        depth=first.depth,
        layer=layer,
        statistic=statistic,
        seeds=sorted({run.seed for run in members}),
        run_ids=[run.id for run in members],
        steps=together.steps.tolist(),
        n=n.tolist(),
        mean=together.mean[:, layer].tolist(),
        low=bound(together.low),
        high=bound(together.high),
        minimum=together.minimum[:, layer].tolist(),
        maximum=together.maximum[:, layer].tolist(),
        non_finite=together.non_finite[:, layer].tolist(),
        single=single,
    )


def _stability_trace(run: RunRow, trace: Trace, accuracy: float | None) -> stability.Trace:
    norms = np.asarray(trace.mean, dtype=np.float64).reshape(len(trace.steps), run.depth)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(norms)
    return stability.Trace(
        run.task,
        run.cell,
        run.depth,
        run.seed,
        np.asarray(trace.steps, dtype=np.int64),
        logs,
        run_id=str(run.id),
        diverged=run.status is Status.DIVERGED,
        accuracy=accuracy,
    )


def _unended(number: int) -> Iterable[str]:
    if number:
        plural = number > 1
        yield f"{number} run{'s have' if plural else ' has'} not ended and {'are' if plural else 'is'} not counted."


def _left_out(broken: Sequence[stability.Trace]) -> Iterable[str]:
    for (cell, depth, why), lost in groupby(broken, lambda trace: (trace.cell, trace.depth, _why(trace))):
        named = [f"seed {trace.seed} (run {trace.run_id})" for trace in lost]
        yield f"Left out of {cell}, depth {depth}: {', '.join(named)} {why}."


def _why(trace: stability.Trace) -> str:
    if trace.diverged:
        return "diverged"
    return "recorded a norm that is not finite" if trace.log_norms.size else "recorded no hidden norms"
