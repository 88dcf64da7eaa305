"""How does one watch a run without asking again and again? A stream of server-sent events."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse

from api.documentation import problems
from api.sessions import FactoryDep
from api.streams import Streams
from store import runs

router = APIRouter(prefix="/v1/runs/{run_id}", tags=["runs"])

EventId = Annotated[int, Query(ge=0, le=2**63 - 1, description="Only later events; Last-Event-ID goes before it.")]
LastEventId = Annotated[str | None, Header(pattern=r"^[0-9]{1,18}$", description="Id of the last event received.")]


@router.get(
    "/events",
    responses=problems(401, 404) | {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
    response_class=StreamingResponse,
    summary="Follow a run as a stream of events",
)
def follow_run(
    run_id: UUID, request: Request, sessions: FactoryDep, after: EventId = 0, last_event_id: LastEventId = None
) -> StreamingResponse:
    """Each event with its id, the state and step as `progress`, and `end` when the run has ended.

    After a break a client sends the id of the last event that it has received, and goes on behind it.
    """
    with sessions() as session:
        runs.get(session, run_id)
    streams: Streams = request.app.state.streams
    began = after if last_event_id is None else int(last_event_id)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(streams.follow(run_id, began), media_type="text/event-stream", headers=headers)
