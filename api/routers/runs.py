"""How are single runs submitted, found and steered?"""

from typing import Annotated
from uuid import UUID, uuid4

from fastapi import APIRouter, Query, Request, Response

from api.documentation import problems
from api.expansion import checked
from api.fields import CellLabel, TaskName
from api.idempotency import IdempotencyKey, earlier, keep, spent
from api.presenting import run_read, run_reads
from api.schemas import RunCreate, RunPage, RunRead
from api.sessions import SessionDep
from store import runs
from store.errors import NotFound
from store.runs import Filters
from store.status import Priority, Status

router = APIRouter(prefix="/v1/runs", tags=["runs"])

Depth = Annotated[int, Query(ge=1, le=2**31 - 1)]
Seed = Annotated[int, Query(ge=0, lt=2**53)]
Limit = Annotated[int, Query(ge=1, le=200, description="Items on a page.")]
Cursor = Annotated[str | None, Query(max_length=200, description="next_cursor of the page before.")]


@router.post(
    "", status_code=202, response_model=RunRead, responses=problems(400, 401, 409, 413), summary="Submit a run"
)
def submit_run(wanted: RunCreate, session: SessionDep, idempotency_key: IdempotencyKey = None) -> Response:
    """Check a configuration and put the run in the queue, or find one that is there already if that is asked for."""
    new = checked(wanted.config, wanted.name)
    own_id = uuid4()
    run_id = earlier(session, "runs", idempotency_key, wanted, makes=own_id)
    if run_id is None and wanted.dedupe == "reuse":
        run_id = runs.to_reuse(session, [new.config_hash], new.code_version).get(new.config_hash)
        if run_id is not None:
            keep(session, "runs", idempotency_key, run_id)
    if run_id is None:
        row = runs.add(
            session,
            id=own_id,
            config=new.config,
            config_hash=new.config_hash,
            cell=new.cell,
            task=new.task,
            depth=new.depth,
            seed=new.seed,
            total_steps=new.total_steps,
            name=new.name,
            code_version=new.code_version,
            needs_data=new.needs_data,
            priority=Priority[wanted.priority.upper()],
        )
    else:
        try:
            row = runs.get(session, run_id)
        except NotFound:
            raise spent(idempotency_key) from None
    answer = run_read(session, row)
    session.commit()
    # Complete as it is: what the framework does with an answer of its own making takes another thread.
    return Response(
        answer.model_dump_json(), 202, {"Location": f"{router.prefix}/{row.id}"}, media_type="application/json"
    )


@router.get("", responses=problems(401), summary="List runs")
def list_runs(
    request: Request,
    session: SessionDep,
    status: Annotated[list[Status], Query(default_factory=list, description="Any of these.")],
    cell: Annotated[list[CellLabel], Query(default_factory=list, description="Any of these labels.")],
    task: Annotated[list[TaskName], Query(default_factory=list, description="Any of these.")],
    depth: Annotated[list[Depth], Query(default_factory=list, description="Any of these numbers of layers.")],
    seed: Annotated[list[Seed], Query(default_factory=list, description="Any of these training seeds.")],
    sweep_id: Annotated[UUID | None, Query(description="Runs that stand in this sweep.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> RunPage:
    """Runs that pass every filter, newest first."""
    filters = Filters(status=status, cell=cell, task=task, depth=depth, seed=seed, sweep_id=sweep_id)
    page = runs.page(session, filters, cursor, limit)
    shown = run_reads(session, page.items, request.app.state.settings.lease_s)
    return RunPage(items=shown, next_cursor=page.next_cursor)


@router.get("/{run_id}", responses=problems(401, 404), summary="Show a run")
def show_run(run_id: UUID, request: Request, session: SessionDep) -> RunRead:
    """The run as it stands."""
    return run_read(session, runs.get(session, run_id), request.app.state.settings.lease_s)


@router.delete("/{run_id}", status_code=204, responses=problems(401, 404, 409), summary="Delete a run")
def delete_run(run_id: UUID, session: SessionDep) -> None:
    """Delete a run that has ended, with all that it measured."""
    runs.delete(session, run_id)
    session.commit()


@router.post("/{run_id}/cancel", status_code=202, responses=problems(401, 404, 409), summary="Cancel a run")
def cancel_run(run_id: UUID, session: SessionDep) -> RunRead:
    """Ask for an end: a run that waits ends at once, one that trains at its worker's next beat."""
    answer = run_read(session, runs.request_cancel(session, run_id))
    session.commit()
    return answer


@router.post("/{run_id}/pause", status_code=202, responses=problems(401, 404, 409), summary="Pause a run")
def pause_run(run_id: UUID, session: SessionDep) -> RunRead:
    """Let the run stop with a checkpoint and wait until it is resumed."""
    answer = run_read(session, runs.request_pause(session, run_id))
    session.commit()
    return answer


@router.post("/{run_id}/resume", status_code=202, responses=problems(401, 404, 409), summary="Resume a run")
def resume_run(run_id: UUID, session: SessionDep) -> RunRead:
    """Queue a paused, failed or cancelled run again; it goes on from its last checkpoint."""
    answer = run_read(session, runs.resume(session, run_id))
    session.commit()
    return answer
