"""Who trains?"""

from fastapi import APIRouter, Request

from api.catalogue_schemas import WorkerList, WorkerRead
from api.documentation import problems
from api.sessions import SessionDep
from store import workers

router = APIRouter(prefix="/v1/workers", tags=["workers"])


@router.get("", responses=problems(401), summary="List workers")
def list_workers(request: Request, session: SessionDep) -> WorkerList:
    """Every worker by its last beat, whose age is measured by the database's clock."""
    lease_s: float = request.app.state.settings.lease_s
    return WorkerList(items=[_shown(heard, lease_s) for heard in workers.read(session)])


def _shown(heard: workers.Heard, lease_s: float) -> WorkerRead:
    row = heard.worker
    busy = "idle" if row.run_id is None else "busy"
    return WorkerRead.model_validate(
        {name: getattr(row, name) for name in WorkerRead.model_fields if hasattr(row, name)}
        | {"beat_age_s": heard.beat_age_s, "state": busy if heard.beat_age_s <= lease_s else "unknown"}
    )
