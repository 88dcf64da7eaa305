"""Is the service alive, is it ready, and what do its counters say?"""

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from api.documentation import problems
from api.problems import Refusal
from api.schemas import Wire
from api.sessions import SessionDep
from store import migrate

router = APIRouter(tags=["health"])


class HealthRead(Wire):
    """Nothing but that all is well."""

    status: str


@router.get("/livez", summary="Is the process alive?")
async def live() -> HealthRead:
    """Answers without the database."""
    return HealthRead(status="alive")


@router.get("/readyz", responses=problems(), summary="Can the service answer?")
def ready(session: SessionDep) -> HealthRead:
    """Answers when the database does and holds the schema that this version needs."""
    if not migrate.is_current(session):
        raise Refusal(
            503,
            "schema-outdated",
            "The database does not hold the schema of this version.",
            remedy="run python -m store.migrate",
            headers={"Retry-After": "5"},
        )
    return HealthRead(status="ready")


@router.get(
    "/metrics",
    summary="Counters for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def metrics(request: Request) -> Response:
    """Runs by status, requests by route and status, and their times, as text for Prometheus."""
    return Response(generate_latest(request.app.state.registry), media_type=CONTENT_TYPE_LATEST)
