"""What does the OpenAPI description say beside the routes? Tags, the problem documents, and where they occur."""

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from api.problems import MEDIA_TYPE, Problem

DESCRIPTION = """
Submit training runs and sweeps of linear recurrent networks, follow them, and compare their hidden norms over seeds
and depths.

* Every path under `/v1` wants the header `Authorization: Bearer <token>`.
* A measured value is a JSON number, or one of the strings `NaN`, `Infinity`, `-Infinity`.
* Times are ISO 8601 in UTC. `step` counts optimiser updates. Accuracy lies in [0, 1].
* Every error is a problem document (RFC 9457) that says which field, what was given there and what to do.
"""

TAGS = [
    {"name": "runs", "description": "One training each: submit, follow, steer, and read what it measured."},
    {"name": "sweeps", "description": "Grids of runs that are submitted as one."},
    {"name": "compare", "description": "Statistics over the seeds of a cell and depth, from all recorded points."},
    {"name": "catalogue", "description": "What a run can name: tasks, cells, complete recipes."},
    {"name": "workers", "description": "Who trains."},
    {"name": "health", "description": "For supervisors and Prometheus; needs no token."},
]

_WHEN = {
    400: "The body could not be read.",
    401: "No token, or a wrong one.",
    404: "There is no such thing.",
    409: "The state of the run does not allow it, or the idempotency key is in use or spent.",
    413: "The body is too large.",
    422: "Something in the request is wrong; the document names field, value and remedy.",
    503: "The database does not answer.",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The responses of a route that may answer with these problems; 422 and 503 are always among them."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": _WHEN[status], "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in sorted({*statuses, 422, 503})
    }


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of the app, made once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            description=DESCRIPTION,
            routes=app.routes,
            tags=TAGS,
        )
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        schemas["Problem"] = Problem.model_json_schema() | {
            "example": {
                "type": "urn:rotbench:problem:bad-config",
                "title": HTTPStatus.UNPROCESSABLE_ENTITY.phrase,
                "status": 422,
                "detail": "model.d_state is 30: it must be divisible by 2 * n_heads = 16.",
                "field": "model.d_state",
                "value": 30,
                "remedy": "it must be divisible by 2 * n_heads = 16",
            }
        }
        app.openapi_schema = document
    return app.openapi_schema
