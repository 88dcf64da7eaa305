"""How are grids of runs submitted, found and cancelled?"""

from uuid import UUID

from fastapi import APIRouter, Response

from api.documentation import problems
from api.expansion import Expansion, expand
from api.idempotency import IdempotencyKey, earlier, keep
from api.presenting import sweep_read, sweep_summaries
from api.routers.runs import Cursor, Limit
from api.schemas import SweepCreate, SweepPage, SweepPlan, SweepRead
from api.sessions import SessionDep
from store import runs, sweeps
from store.status import Priority

router = APIRouter(prefix="/v1/sweeps", tags=["sweeps"])


@router.post(
    "",
    status_code=202,
    response_model=SweepRead,
    responses=problems(400, 401, 409, 413) | {200: {"model": SweepPlan, "description": "The plan, with dry_run."}},
    summary="Submit a sweep",
)
def submit_sweep(
    wanted: SweepCreate, response: Response, session: SessionDep, idempotency_key: IdempotencyKey = None
) -> SweepRead | Response:
    """Check every combination of the grid and queue one run for each, all or none."""
    expansion = expand(wanted.config, wanted.grid, wanted.name)
    if wanted.dry_run:
        return Response(_plan(session, expansion).model_dump_json(), media_type="application/json")
    sweep_id = earlier(session, "sweeps", idempotency_key, wanted)
    if sweep_id is None:
        sweep = sweeps.add(
            session,
            config=expansion.base,
            grid=wanted.grid,
            cells=expansion.runs,
            name=wanted.name,
            dedupe=wanted.dedupe,
            priority=Priority[wanted.priority.upper()],
        ).sweep
        keep(session, "sweeps", idempotency_key, sweep.id)
    else:
        sweep = sweeps.get(session, sweep_id)
    answer = sweep_read(session, sweep)
    session.commit()
    response.headers["Location"] = f"{router.prefix}/{sweep.id}"
    return answer


@router.get("", responses=problems(401), summary="List sweeps")
def list_sweeps(session: SessionDep, limit: Limit = 50, cursor: Cursor = None) -> SweepPage:
    """Sweeps, newest first, without their lists of runs."""
    page = sweeps.page(session, cursor, limit)
    return SweepPage(items=sweep_summaries(session, page.items), next_cursor=page.next_cursor)


@router.get("/{sweep_id}", responses=problems(401, 404), summary="Show a sweep")
def show_sweep(sweep_id: UUID, session: SessionDep) -> SweepRead:
    """The sweep as it stands, with its runs in the order of the grid."""
    return sweep_read(session, sweeps.get(session, sweep_id))


@router.post("/{sweep_id}/cancel", status_code=202, responses=problems(401, 404), summary="Cancel a sweep")
def cancel_sweep(sweep_id: UUID, session: SessionDep) -> SweepRead:
    """Cancel every run that the sweep made and that has not ended; runs that it only reuses go on."""
    sweeps.cancel(session, sweep_id)
    answer = sweep_read(session, sweeps.get(session, sweep_id))
    session.commit()
    return answer


def _plan(session: SessionDep, expansion: Expansion) -> SweepPlan:
    known = runs.reusable(session, (run.config_hash for run in expansion.runs))
    return SweepPlan(
        total=len(expansion.runs),
        configs_preview=[dict(run.config) for run in expansion.runs[:5]],
        duplicates=len(known),
        merged=expansion.merged,
    )
