"""What did a run measure, write and keep? Its metrics, hidden norms, logs, attempts and checkpoints."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from api.documentation import problems
from api.freshness import UNCHANGED, unchanged
from api.problems import Refusal
from api.refusals import bad_cursor
from api.schemas import (
    AttemptList,
    AttemptRead,
    CheckpointList,
    CheckpointRead,
    EventRead,
    HiddenNormSeriesRead,
    HiddenNormsRead,
    History,
    LogLineRead,
    LogPage,
    MetricSeriesRead,
    MetricsRead,
)
from api.sessions import SessionDep
from rotrnn_core.records import Statistic
from store import attempts, charts, checkpoints, events, hidden_norms, logs, metrics, runs
from store.errors import BadCursor

router = APIRouter(prefix="/v1/runs/{run_id}", tags=["runs"])

MOST_NUMBERS = 1_000_000
AfterStep = Annotated[int | None, Query(ge=-1, le=2**31 - 1, description="Only later steps.")]
MetricKey = Annotated[str, Query(min_length=1, max_length=100, pattern=r"^[a-z][a-z0-9_]*$")]


@router.get(
    "/metrics", response_model=MetricsRead, responses=problems(401, 404) | UNCHANGED, summary="Read metric series"
)
def read_metrics(
    run_id: UUID,
    request: Request,
    response: Response,
    session: SessionDep,
    key: Annotated[list[MetricKey], Query(default_factory=list, description="Which series; all without it.")],
    after_step: AfterStep = None,
    max_points: Annotated[
        int | None,
        Query(ge=5, le=100_000, description="Thin a longer series: of each bucket of steps its first, last, extremes."),
    ] = None,
) -> MetricsRead | Response:
    """Each series with each step once; after a resume the newer attempt's steps stand."""
    known = unchanged(request, response, [runs.get(session, run_id)])
    if known is not None:
        return known
    if max_points is None:
        _check_size(charts.points(session, run_id, key), "points", "max_points, key or after_step")
    found = metrics.read(session, run_id, key, after_step=after_step, max_points=max_points)
    return MetricsRead(run_id=run_id, series=[MetricSeriesRead.model_validate(series) for series in found])


@router.get(
    "/hidden-norms",
    response_model=HiddenNormsRead,
    responses=problems(401, 404) | UNCHANGED,
    summary="Read hidden-norm traces",
)
def read_hidden_norms(
    run_id: UUID,
    request: Request,
    response: Response,
    session: SessionDep,
    statistic: Annotated[list[Statistic], Query(default_factory=list, description="Which statistics; all without it.")],
    after_step: AfterStep = None,
    include_profile: Annotated[bool, Query(description="With the profile along time.")] = False,
) -> HiddenNormsRead | Response:
    """The norm of every layer at every recorded step, as the trainer measured it on the probe batch."""
    run = runs.get(session, run_id)
    known = unchanged(request, response, [run])
    if known is not None:
        return known
    size = hidden_norms.size(session, run_id, statistic, after_step=after_step, include_profile=include_profile)
    _check_size(size, "numbers", "statistic or after_step, and leave the profile out")
    found = hidden_norms.read(session, run_id, statistic, after_step=after_step, include_profile=include_profile)
    return HiddenNormsRead(
        run_id=run_id,
        layers=run.depth,
        profile_positions=run.profile_positions or [],
        series=[HiddenNormSeriesRead.model_validate(trace) for trace in found],
    )


@router.get("/logs", responses=problems(401, 404), summary="Read the log")
def read_logs(
    run_id: UUID,
    session: SessionDep,
    after: Annotated[str | None, Query(max_length=60, description="next_cursor of the answer before.")] = None,
    limit: Annotated[int, Query(ge=1, le=2000)] = 500,
) -> LogPage:
    """The lines that trainers and supervisors wrote, attempt by attempt."""
    runs.get(session, run_id)
    try:
        page = logs.read(session, run_id, after=after, limit=limit)
    except BadCursor as error:
        raise bad_cursor(error, "after") from None
    return LogPage(items=[LogLineRead.model_validate(line) for line in page.items], next_cursor=page.next_cursor)


@router.get("/attempts", responses=problems(401, 404), summary="List attempts")
def list_attempts(run_id: UUID, session: SessionDep) -> AttemptList:
    """Who tried, on what, and how it ended."""
    runs.get(session, run_id)
    return AttemptList(items=[AttemptRead.model_validate(row) for row in attempts.read(session, run_id)])


@router.get("/history", responses=problems(401, 404), summary="Read what happened")
def read_history(
    run_id: UUID,
    session: SessionDep,
    after: Annotated[int, Query(ge=0, le=2**63 - 1, description="next_cursor of the answer before.")] = 0,
    limit: Annotated[int, Query(ge=1, le=2000)] = 500,
) -> History:
    """Every change of the run's state and its reason, first to last."""
    runs.get(session, run_id)
    items = [EventRead.model_validate(row) for row in events.read(session, run_id, after=after, limit=limit)]
    return History(items=items, next_cursor=items[-1].id if items else after or None)


@router.get("/checkpoints", responses=problems(401, 404), summary="List checkpoints")
def list_checkpoints(run_id: UUID, session: SessionDep) -> CheckpointList:
    """What a resume could go on from."""
    runs.get(session, run_id)
    found = checkpoints.newest_first(session, run_id)
    return CheckpointList(items=[CheckpointRead.model_validate(row) for row in found])


def _check_size(number: int, what: str, how: str) -> None:
    """Refuse an answer of tens of megabytes.

    Raises:
        Refusal: 422, with another way to the numbers.
    """
    if number > MOST_NUMBERS:
        raise Refusal(
            422,
            "answer-too-large",
            f"The answer would hold {number} {what}; one answer holds at most {MOST_NUMBERS}.",
            field="query",
            value=f"{number} {what}",
            remedy=f"narrow it by {how}, or take everything by GET /v1/export",
        )
