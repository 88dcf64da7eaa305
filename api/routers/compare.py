"""How do cells compare over seeds and depths? Hidden norms per step, and the stability numbers."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Annotated, Any, Literal
from uuid import UUID

import numpy as np
from fastapi import APIRouter, Query
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from api import derived
from api.comparison_schemas import (
    AccuracyRead,
    ClaimRead,
    CostRead,
    HiddenNormComparisonRead,
    HiddenNormGroupRead,
    MeasureRead,
    OverDepthRead,
    PairedRead,
    ProfileGroupRead,
    ProfilesRead,
    SingleRunRead,
    StabilityRead,
    StabilityRowRead,
)
from api.documentation import problems
from api.fields import CellLabel, TaskName
from api.grouping import GroupBy, grouped
from api.groups import Curve, OverSeeds, differing_fields, over_seeds, over_seeds_in_logs
from api.problems import Refusal
from api.routers.runs import Depth
from api.sessions import SessionDep
from rotrnn_core import stability
from rotrnn_core.claim import claim
from rotrnn_core.records import Statistic
from store import hidden_norms, metrics, runs, sweeps
from store.hidden_norms import Profiles, Trace
from store.runs import Filters
from store.status import Status
from store.tables import RunRow

router = APIRouter(prefix="/v1/compare", tags=["compare"])

MOST_RUNS = 2_000
MOST_NUMBERS = 2_000_000
MOST_RESAMPLED = 100_000
_ENDED = (Status.SUCCEEDED, Status.DIVERGED)
SweepId = Annotated[UUID | None, Query(description="Only runs that stand in this sweep.")]
Tasks = Annotated[list[TaskName], Query(default_factory=list, description="Any of these.")]
Cells = Annotated[list[CellLabel], Query(default_factory=list, description="Any of these labels.")]
Depths = Annotated[list[Depth], Query(default_factory=list, description="Any of these numbers of layers.")]
MaxSteps = Annotated[
    int, Query(ge=2, le=100_000, description="Of more steps than this, so many evenly chosen ones are shown.")
]
Bootstrap = Annotated[
    bool, Query(description="With the mean's bootstrap interval: percentiles, and BCa from 8 seeds on.")
]


@router.get("/hidden-norms", responses=problems(401, 404), summary="Compare hidden norms over seeds")
def compare_hidden_norms(
    session: SessionDep,
    task: Tasks,
    cell: Cells,
    depth: Depths,
    group_by: GroupBy,
    sweep_id: SweepId = None,
    statistic: Annotated[Statistic, Query(description="relative: against the layer before training.")] = "relative",
    layer: Annotated[int | None, Query(ge=0, le=255, description="Only this layer, counted from 0.")] = None,
    with_runs: Annotated[bool, Query(alias="runs", description="With the curve of each run.")] = False,
    with_diverged: Annotated[
        bool, Query(alias="diverged", description="With the curve of each run that diverged.")
    ] = False,
    scale: Annotated[
        Literal["linear", "log"], Query(description="log: the geometric mean, with the t interval of the logarithms.")
    ] = "linear",
    max_steps: MaxSteps = 1_000,
    bootstrap: Bootstrap = False,
) -> HiddenNormComparisonRead:
    """Statistics over all seeds with n and a 95% t interval, per group, layer and step.

    Runs that failed or were cancelled are left out; of runs with equal configuration the newest counts.
    """
    chosen = chosen_runs(session, Filters(task=task, cell=cell, depth=depth, sweep_id=sweep_id))
    traces = hidden_norms.traces(session, [run.id for run in chosen], statistic)
    recorded = [run for run in chosen if traces[run.id].steps.size]
    groups: list[HiddenNormGroupRead] = []
    statistics = over_seeds if scale == "linear" else over_seeds_in_logs
    check_bootstrap(bootstrap, (min(max_steps, traces[run.id].steps.size) * run.depth for run in recorded))
    for group in grouped(recorded, group_by):
        members = group.runs
        curves = [_curve(run, traces[run.id]) for run in members]
        together = statistics(curves, most_steps=max_steps, bootstrap=bootstrap)
        for index in range(members[0].depth) if layer is None else {layer} & set(range(members[0].depth)):
            drawn = [
                (run, curve)
                for run, curve in zip(members, curves, strict=True)
                if with_runs or (with_diverged and run.status is Status.DIVERGED)
            ]
            single = [_single(run, curve, index, together.steps) for run, curve in drawn]
            shown = _group_read(members, statistic, together, index, single)
            groups.append(shown.model_copy(update={"fields": group.fields}))
    check_numbers(sum(10 * len(group.steps) for group in groups))
    return HiddenNormComparisonRead(statistic=statistic, warnings=list(warnings_of(recorded, group_by)), groups=groups)


@router.get("/profiles", responses=problems(401, 404), summary="Compare norms along the sequence")
def compare_profiles(
    session: SessionDep,
    task: Tasks,
    cell: Cells,
    depth: Depths,
    sweep_id: SweepId = None,
    statistic: Annotated[Statistic, Query(description="As in /v1/compare/hidden-norms.")] = "per_head",
    step: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Last kept step up to here; else the last.")] = (
        None
    ),
) -> ProfilesRead:
    """Geometric mean over seeds with the 95% t interval of the logarithms, at each place of the sequence.

    Of each run the last kept profile counts, or the last up to `step`; a run without one is left out.
    """
    chosen = chosen_runs(session, Filters(task=task, cell=cell, depth=depth, sweep_id=sweep_id))
    found = hidden_norms.profiles(session, [run.id for run in chosen], statistic)
    kept = {run.id: _last_kept(found[run.id], step) for run in chosen if run.id in found}
    groups: list[ProfileGroupRead] = []
    for _, members in _grouped(run for run in chosen if kept.get(run.id) is not None):
        curves = [_along(run, found[run.id], kept[run.id] or 0) for run in members]
        together = over_seeds_in_logs(curves)
        steps = [int(found[run.id].steps[kept[run.id] or 0]) for run in members]
        groups += [_profile_read(members, statistic, steps, together, layer) for layer in range(members[0].depth)]
    return ProfilesRead(statistic=statistic, groups=groups)


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
    ended = chosen_runs(session, replace(filters, status=_ENDED))
    training = [run for run in chosen_runs(session, filters) if run.status not in _ENDED]
    ids = [run.id for run in ended]
    traces = hidden_norms.traces(session, ids, "relative")
    last = metrics.latest(session, ids, ["test_accuracy", "validation_loss"])
    lines = [_stability_trace(run, traces[run.id], last[run.id].get("test_accuracy")) for run in ended]
    stuck = [run for run in ended if derived.stuck(run, last[run.id].get("validation_loss"))]
    report = stability.report(lines)
    warnings = [*_unended(len(training)), *_left_out(report.broken), *_stuck(stuck), *warnings_of(ended)]
    return StabilityRead(
        tasks=sorted({run.task for run in ended}),
        measures=[MeasureRead.model_validate(measure) for measure in report.measures],
        rows=[StabilityRowRead.model_validate(vars(row) | vars(row.value)) for row in report.rows],
        paired=list(map(_paired_read, report.paired)),
        paired_settling=list(map(_paired_read, report.paired_settling)),
        over_depth=[
            OverDepthRead.model_validate(vars(o) | vars(o.value) | {"measure": stability.DEPTH_MEASURE.name})
            for o in report.over_depth
        ],
        depth_measure=MeasureRead.model_validate(stability.DEPTH_MEASURE),
        costs=_costs(ended),
        claim=ClaimRead.model_validate(claim(lines)),
        accuracy=[AccuracyRead.model_validate(vars(row) | vars(row.value)) for row in report.accuracy],
        warnings=warnings,
    )


def _paired_read(paired: stability.Paired) -> PairedRead:
    value = paired.difference
    return PairedRead.model_validate(vars(paired) | vars(value) | {"difference": value.estimate})


def _costs(chosen: Sequence[RunRow]) -> list[CostRead]:
    """What the networks of each task, cell and depth need, each size once."""
    found = {(run.task, run.cell, run.depth, derived.cost_of(run)): None for run in chosen}
    return [
        CostRead.model_validate({"task": task, "cell": cell, "depth": depth} | vars(cost))
        for task, cell, depth, cost in found
        if cost is not None
    ]


def check_numbers(number: int) -> None:
    """Refuse an answer of tens of megabytes; it is never made smaller, so that no group depends on another.

    Raises:
        Refusal: 422.
    """
    if number > MOST_NUMBERS:
        raise Refusal(
            422,
            "answer-too-large",
            f"The answer would hold {number} numbers; one answer holds at most {MOST_NUMBERS}.",
            field="query",
            value=f"{number} numbers",
            remedy="lower max_steps, or ask for one layer or fewer groups",
        )


def check_bootstrap(wanted: bool, cells: Iterable[int]) -> None:
    """Refuse to resample for minutes.

    Raises:
        Refusal: 422.
    """
    number = sum(cells) if wanted else 0
    if number > MOST_RESAMPLED:
        raise Refusal(
            422,
            "too-much-to-resample",
            f"The bootstrap would resample {number} values; one answer resamples at most {MOST_RESAMPLED}.",
            field="bootstrap",
            value=True,
            remedy="lower max_steps, or ask for fewer groups",
        )


def chosen_runs(session: Session, filters: Filters) -> list[RunRow]:
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


def warnings_of(members: Sequence[RunRow], fields: Sequence[str] = ()) -> Iterable[str]:
    """What makes the runs of each group unequal beside the seed, in words."""
    for whole in grouped(members, fields):
        group = whole.runs
        title = ", ".join([whole.cell, f"depth {whole.depth}", whole.task, *map(" ".join, whole.fields.items())])
        differing = differing_fields([run.config for run in group])
        if differing:
            said = "; ".join(f"{field} ({', '.join(map(str, values))})" for field, values in differing.items())
            yield f"{title}: the {len(group)} runs differ not only in the seed but in {said}."
        elif len({run.seed for run in group}) < len(group):
            yield f"{title}: several runs share a seed; each seed counts once, by the mean of its runs."


def _curve(run: RunRow, trace: Trace) -> Curve:
    return Curve(run.seed, np.asarray(trace.steps, dtype=np.int64), np.asarray(trace.mean, dtype=np.float64))


def _last_kept(found: Profiles, step: int | None) -> int | None:
    """The index of the last profile up to a step."""
    kept = found.steps.size if step is None else int(np.searchsorted(found.steps, step, side="right"))
    return kept - 1 if kept else None


def _along(run: RunRow, found: Profiles, at: int) -> Curve:
    """A profile as a curve whose steps are the places in the sequence."""
    values = np.asarray(found.values[at], dtype=np.float64).T
    positions = np.asarray(run.profile_positions or range(1, len(values) + 1), dtype=np.int64)
    return Curve(run.seed, positions, values)


def _profile_read(
    members: Sequence[RunRow], statistic: str, steps: list[int], together: OverSeeds, layer: int
) -> ProfileGroupRead:
    read = _group_read(members, statistic, together, layer, [])
    shared = read.model_dump(exclude={"steps", "seeds", "minimum", "maximum", "single"})
    return ProfileGroupRead(**shared, steps=steps, positions=together.steps.tolist())


def _single(run: RunRow, curve: Curve, layer: int, steps: NDArray[np.int64]) -> SingleRunRead:
    """A run's own curve at the steps of its group, with its last step and the last one that is finite."""
    values = curve.values[:, layer]
    shown = np.isin(curve.steps, steps)
    shown[-1:] = True
    shown[np.flatnonzero(np.isfinite(values))[-1:]] = True
    return SingleRunRead(
        seed=run.seed,
        run_id=run.id,
        status=run.status,
        steps=curve.steps[shown].tolist(),
        values=values[shown].tolist(),
    )


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
        recorded_steps=together.recorded,
        mean=together.mean[:, layer].tolist(),
        median=together.median[:, layer].tolist(),
        iqm=together.iqm[:, layer].tolist(),
        bootstrap_low=None if together.bootstrap_low is None else bound(together.bootstrap_low),
        bootstrap_high=None if together.bootstrap_high is None else bound(together.bootstrap_high),
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


def _stuck(stuck: Sequence[RunRow]) -> Iterable[str]:
    for (task, cell, depth), group in _grouped(stuck):
        named = ", ".join(f"seed {run.seed} (run {run.id})" for run in group)
        yield f"Stuck at the loss of a guess, and counted: {cell}, depth {depth}, {task}: {named}."


def _why(trace: stability.Trace) -> str:
    if trace.diverged:
        return "diverged"
    return "recorded a norm that is not finite" if trace.log_norms.size else "recorded no hidden norms"
