"""Which rows does an export hold? Those of runs, metrics or hidden norms, as columns that come batch by batch."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy.orm import Session, sessionmaker

from api.export_formats import Columns, Kind, Schema
from api.presenting import LATEST, run_reads
from api.schemas import RunRead
from store import attempts, export, runs
from store.export import Chosen, Identity

_IDENTITY: dict[str, Kind] = {"run_id": "text", "task": "text", "cell": "text", "depth": "integer", "seed": "integer"}
METRICS: Schema = _IDENTITY | {"key": "text", "attempt": "integer", "step": "integer", "value": "float"}
HIDDEN_NORMS: Schema = _IDENTITY | {
    "statistic": "text",
    "layer": "integer",
    "attempt": "integer",
    "step": "integer",
    "mean": "float",
    "deviation": "float",
    "minimum": "float",
    "maximum": "float",
    "non_finite": "integer",
}
_OF_RUN: dict[str, Kind] = {
    "id": "text",
    "name": "text",
    "sweep_id": "text",
    "task": "text",
    "cell": "text",
    "depth": "integer",
    "seed": "integer",
    "status": "text",
    "failure_class": "text",
    "reason": "text",
    "step": "integer",
    "total_steps": "integer",
    "attempt": "integer",
    "priority": "text",
    "device": "text",
    "parameter_count": "integer",
    "created_at": "text",
    "queued_at": "text",
    "started_at": "text",
    "finished_at": "text",
    "config_hash": "text",
}
_LATEST: dict[str, Kind] = dict.fromkeys(LATEST, "float")
_DIVERGENCE: dict[str, Kind] = {"step": "integer", "layer": "integer", "kind": "text"}
_COST: dict[str, Kind] = {"state_size": "integer", "flops_per_token": "integer", "stuck": "boolean"}
RUNS: Schema = (
    _OF_RUN
    | _LATEST
    | {f"divergence_{name}": kind for name, kind in _DIVERGENCE.items()}
    | {"config": "text"}
    | _COST
    | {"host": "text", "environment": "text", "confusion": "text"}
)
_PAGE = 200


def run_columns(sessions: sessionmaker[Session], chosen: Chosen) -> Iterator[Columns]:
    """A row per run: as it stands, with the host and environment of its last attempt and what it took for what."""
    ids = [run.run_id for run in chosen.runs]
    for start in range(0, len(ids), _PAGE):
        page = ids[start : start + _PAGE]
        with sessions() as session:
            rows = {row.id: row for row in runs.of_ids(session, page)}
            found = run_reads(session, [rows[id] for id in page if id in rows])
            last = attempts.last(session, page)
            confusions = runs.confusions(session, page)
        made = [_run_row(run, last.get(run.id), confusions.get(run.id)) for run in found]
        yield {name: [row[name] for row in made] for name in RUNS}


def metric_columns(sessions: sessionmaker[Session], chosen: Chosen, keys: Sequence[str]) -> Iterator[Columns]:
    """A row per effective point."""
    for run in chosen.runs:
        for found in export.points(sessions, run.run_id, keys):
            yield _identity(run, len(found.step)) | vars(found)


def norm_columns(sessions: sessionmaker[Session], chosen: Chosen, statistics: Sequence[str]) -> Iterator[Columns]:
    """A row per effective record and layer."""
    for run in chosen.runs:
        for statistic in statistics:
            for found in export.norms(sessions, run.run_id, statistic):
                number = len(found.step)
                yield _identity(run, number) | {"statistic": [statistic] * number} | vars(found)


def _identity(run: Identity, number: int) -> dict[str, Sequence[Any]]:
    named = vars(run) | {"run_id": str(run.run_id)}
    return {name: [named[name]] * number for name in _IDENTITY}


def _run_row(run: RunRead, last: Any, confusion: Any) -> dict[str, Any]:
    plain = run.model_dump(mode="json")
    divergence = plain["divergence"] or {}
    return (
        {name: plain[name] for name in (*_OF_RUN, *_COST)}
        | {name: run.latest.get(name) for name in _LATEST}
        | {f"divergence_{name}": divergence.get(name) for name in _DIVERGENCE}
        | {"config": _json(run.config), "confusion": _json(confusion), "host": None, "environment": None}
        | ({} if last is None else {"host": last.host, "environment": _json(last.environment)})
    )


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
