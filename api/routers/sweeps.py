"""How are grids of runs submitted, found and cancelled?"""

from uuid import UUID

from fastapi import APIRouter, Response

from api.documentation import problems
from api.expansion import MOST_RUNS, Expansion, checked, expand_all
from api.idempotency import IdempotencyKey, earlier, keep
from api.presenting import cost_estimate, sizes, sweep_read, sweep_summaries
from api.routers.runs import Cursor, Limit
from api.schemas import SweepCreate, SweepExtend, SweepPage, SweepPlan, SweepRead
from api.sessions import SessionDep
from rotrnn_core.config import ConfigError
from rotrnn_core.version import code_version
from store import runs, sweep_control, sweeps
from store.runs import NewRun
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
    expansion = expand_all(wanted.config, wanted.grid, wanted.combinations, wanted.name, wanted.match)
    if wanted.dry_run:
        plan = _plan(session, expansion, reuse=wanted.dedupe == "reuse")
        return Response(plan.model_dump_json(), media_type="application/json")
    sweep_id = earlier(session, "sweeps", idempotency_key, wanted)
    if sweep_id is None:
        sweep = sweeps.add(
            session,
            config=expansion.base,
            grid=wanted.grid,
            combinations=wanted.combinations,
            cells=expansion.runs,
            name=wanted.name,
            match=wanted.match,
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


@router.post("/{sweep_id}/pause", status_code=202, responses=problems(401, 404), summary="Pause a sweep")
def pause_sweep(sweep_id: UUID, session: SessionDep) -> SweepRead:
    """Pause every run that the sweep made: those that wait at once, those that train with a checkpoint."""
    sweep_control.pause(session, sweep_id)
    return _changed(session, sweep_id)


@router.post("/{sweep_id}/resume", status_code=202, responses=problems(401, 404), summary="Resume a sweep")
def resume_sweep(sweep_id: UUID, session: SessionDep) -> SweepRead:
    """Queue every paused run that the sweep made; each goes on from its last checkpoint."""
    sweep_control.resume(session, sweep_id)
    return _changed(session, sweep_id)


@router.post(
    "/{sweep_id}/extend", status_code=202, responses=problems(400, 401, 404, 409, 413), summary="Extend a sweep"
)
def extend_sweep(
    sweep_id: UUID, wanted: SweepExtend, session: SessionDep, idempotency_key: IdempotencyKey = None
) -> SweepRead:
    """Queue every cell of the sweep with each further seed, all or none; a seed that a cell has adds nothing.

    A cell keeps the d_state that the sweep's `match` has given it.
    """
    if earlier(session, f"sweeps/{sweep_id}/extend", idempotency_key, wanted) is None:
        sweep = sweep_control.lock(session, sweep_id)
        cells: dict[str, NewRun] = {}
        for row in runs.of_ids(session, sweeps.run_ids(session, [sweep_id])[sweep_id]):
            for seed in wanted.seeds:
                config = {**row.config, "training": {**row.config["training"], "seed": seed}}
                cell = checked(config, row.name)
                cells.setdefault(cell.config_hash, cell)
        if sweep.total + len(cells) > MOST_RUNS:
            raise ConfigError("seeds", f"{len(cells)} more cells", f"a sweep has at most {MOST_RUNS} runs; give fewer")
        ordered = sorted(cells.values(), key=lambda new: (new.task, new.cell, new.depth, new.seed, new.config_hash))
        sweep_control.extend(session, sweep_id, ordered, dedupe=wanted.dedupe)
        keep(session, f"sweeps/{sweep_id}/extend", idempotency_key, sweep_id)
    return _changed(session, sweep_id)


def _changed(session: SessionDep, sweep_id: UUID) -> SweepRead:
    answer = sweep_read(session, sweeps.get(session, sweep_id))
    session.commit()
    return answer


def _plan(session: SessionDep, expansion: Expansion, *, reuse: bool) -> SweepPlan:
    known = runs.reusable(session, (run.config_hash for run in expansion.runs), code_version())
    new = [run for run in expansion.runs if not (reuse and run.config_hash in known)]
    return SweepPlan(
        cost=cost_estimate(session, new),
        total=len(expansion.runs),
        configs_preview=[dict(run.config) for run in expansion.runs[:5]],
        duplicates=len(known),
        merged=expansion.merged,
        sizes=sizes(expansion.runs),
    )
