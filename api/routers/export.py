"""How does one take everything home? Runs, metrics and hidden norms as files that are written while they are read."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Path, Query
from fastapi.responses import StreamingResponse

from api.documentation import problems
from api.export_formats import FORMATS, Columns, Schema, pieces
from api.exporting import HIDDEN_NORMS, METRICS, RUNS, metric_columns, norm_columns, run_columns
from api.routers.compare import Cells, Depths, SweepId, Tasks
from api.routers.runs import Seed
from api.routers.series import MetricKey
from api.sessions import FactoryDep
from rotrnn_core.records import STATISTICS, Statistic
from rotrnn_core.version import code_version
from store import export, sweeps
from store.runs import Filters
from store.status import Status

router = APIRouter(prefix="/v1/export", tags=["runs"])

FileKind = Annotated[Literal["csv", "json", "parquet"], Path(description="json has an object per line.")]
_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {kind.media_type: {"schema": {"type": "string", "format": "binary"}} for kind in FORMATS.values()},
        "headers": {
            "X-RotBench-Provenance": {
                "description": "JSON: what was asked for, of which code, and when; also inside a Parquet file.",
                "schema": {"type": "string"},
            }
        },
    }
}


@router.get(
    "/{what}.{kind}",
    responses=problems(401, 404) | _FILE,
    response_class=StreamingResponse,
    summary="Export everything that was measured",
)
def export_file(
    what: Literal["runs", "metrics", "hidden-norms"],
    kind: FileKind,
    sessions: FactoryDep,
    status: Annotated[list[Status], Query(default_factory=list, description="Any of these.")],
    task: Tasks,
    cell: Cells,
    depth: Depths,
    seed: Annotated[list[Seed], Query(default_factory=list, description="Any of these training seeds.")],
    key: Annotated[list[MetricKey], Query(default_factory=list, description="Of metrics: which; all without it.")],
    statistic: Annotated[list[Statistic], Query(default_factory=list, description="Of hidden norms; all without it.")],
    sweep_id: SweepId = None,
    run_id: Annotated[UUID | None, Query(description="Only this run.")] = None,
) -> StreamingResponse:
    """Every effective point of the runs that pass the filters, unthinned; the three kinds hold the same rows.

    A file of any length takes constant memory. One that breaks off is not complete: the connection says so.
    """
    with sessions() as session:
        if sweep_id is not None:
            sweeps.get(session, sweep_id)
        chosen = export.choose(
            session,
            Filters(status=status, cell=cell, task=task, depth=depth, seed=seed, sweep_id=sweep_id, run_id=run_id),
        )
    filters: dict[str, Any] = {
        "status": status,
        "task": task,
        "cell": cell,
        "depth": depth,
        "seed": seed,
        "key": key,
        "statistic": statistic,
        "sweep_id": sweep_id and str(sweep_id),
        "run_id": run_id and str(run_id),
    }
    provenance = {
        "what": what,
        "filters": {name: value for name, value in filters.items() if value},
        "runs": len(chosen.runs),
        "code_version": code_version(),
        "queried_at": chosen.at.isoformat(),
    }
    schema: Schema
    columns: Iterator[Columns]
    if what == "runs":
        schema, columns = RUNS, run_columns(sessions, chosen)
    elif what == "metrics":
        schema, columns = METRICS, metric_columns(sessions, chosen, key)
    else:
        schema, columns = HIDDEN_NORMS, norm_columns(sessions, chosen, statistic or STATISTICS)
    writer = FORMATS[kind].writer(schema, provenance)
    headers = {
        "X-RotBench-Provenance": json.dumps(provenance),
        "Content-Disposition": f'attachment; filename="{what}.{kind}"',
        "Cache-Control": "no-store",
    }
    return StreamingResponse(pieces(writer, columns), media_type=FORMATS[kind].media_type, headers=headers)
