"""What does a chart of many series show? Each summed up in the same buckets, in an answer of bounded size."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field
from sqlalchemy.orm import Session

from api.documentation import problems
from api.fields import Number
from api.freshness import UNCHANGED, unchanged
from api.problems import Refusal
from api.routers.series import MetricKey
from api.schemas import Wire
from api.sessions import SessionDep
from store import charts, runs
from store.errors import NotFound

router = APIRouter(prefix="/v1/charts", tags=["runs"])

MOST_LINES = 200
MOST_BYTES = 1_000_000


class LineRead(Wire):
    """One metric of one run: its points where they are few, else what the points of each bucket come to."""

    run_id: UUID
    key: str
    steps: list[int] = Field(description="Of the points, or the first step of each bucket that has points.")
    values: list[Number] | None = Field(description="The points, where the series is whole; else null.")
    first: list[Number]
    last: list[Number]
    minimum: list[Number | None] = Field(description="Over the finite values of a bucket; null where it has none.")
    maximum: list[Number | None]
    points: list[int] = Field(description="How many points the bucket has.")
    non_finite: list[int] = Field(description="How many of them are not finite.")


class ChartRead(Wire):
    """Series of several runs over common buckets of steps; the first bucket begins at step 0."""

    width: int = Field(description="Steps that a bucket covers.")
    lines: list[LineRead] = Field(description="In the order of runs, then keys; one without points is empty.")


@router.get(
    "/metrics",
    response_model=ChartRead,
    responses=problems(401, 404) | UNCHANGED,
    summary="Read the metrics of several runs as a chart",
)
def chart_metrics(
    request: Request,
    response: Response,
    session: SessionDep,
    run_id: Annotated[list[UUID], Query(min_length=1, max_length=MOST_LINES, description="Which runs.")],
    key: Annotated[list[MetricKey], Query(min_length=1, max_length=50, description="Which series.")],
    buckets: Annotated[int, Query(ge=1, le=5_000, description="At most so many; fewer keep the answer small.")] = 1_000,
) -> Response:
    """The first, last, smallest and largest value of each bucket, from all effective points.

    A series of no more points than buckets comes whole. The answer has at most a million bytes.
    """
    ids, keys = list(dict.fromkeys(run_id)), list(dict.fromkeys(key))
    rows = runs.of_ids(session, ids)
    missing = set(ids) - {row.id for row in rows}
    if missing:
        raise NotFound("run", min(missing))
    if len(ids) * len(keys) > MOST_LINES:
        raise Refusal(
            422,
            "too-many-lines",
            f"{len(ids)} runs and {len(keys)} keys make more than {MOST_LINES} lines.",
            field="query",
            value=f"{len(ids) * len(keys)} lines",
            remedy="ask for fewer runs or keys",
        )
    known = unchanged(request, response, rows)
    return known or Response(
        _bounded(session, ids, keys, buckets), headers=response.headers, media_type="application/json"
    )


def _bounded(session: Session, ids: Sequence[UUID], keys: Sequence[str], buckets: int) -> bytes:
    while True:
        chart = charts.read(session, ids, keys, buckets)
        body = ChartRead.model_validate(chart).model_dump_json().encode()
        if len(body) <= MOST_BYTES or buckets == 1:
            return body
        buckets = max(1, min(buckets - 1, buckets * MOST_BYTES * 9 // (len(body) * 10)))
