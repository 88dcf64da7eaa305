"""Does the service keep to its own description, whatever it is asked?"""

import math
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from api.app import create_app
from api.settings import Settings

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    ignored_auth,
    unsupported_method,
]


app = create_app(Settings(database_url="postgresql+psycopg://nobody@127.0.0.1:1/none"))
schema = schemathesis.openapi.from_asgi("/openapi.json", app)


@pytest.fixture(autouse=True)
def _on_a_real_database(door: Any) -> None:
    """Cases are made from the description before any database is there; now the app gets one."""
    app.state.sessions = door.sessions


@schema.parametrize()
@settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much],
)
def test_no_request_gets_an_answer_that_the_description_does_not_promise(case: Case, door: Any) -> None:
    authorised = {"Authorization": door.http.headers["Authorization"]}
    case.call_and_validate(headers=authorised, checks=CHECKS)


@pytest.fixture(scope="module")
def full(door: Any) -> dict[str, Any]:
    """Ids of a sweep and of a run that holds everything that a run can hold."""
    sweep = door.http.post("/v1/sweeps", json={"grid": {"training.seed": [0, 1, 2]}, "name": "full"}).json()
    for run_id in sweep["runs"][:2]:
        norms = {0: [1.0, 1.0], 10: [math.nan, math.inf], 20: [0.5, -0.0]}
        metrics = [("train_loss", 1, math.nan), ("train_loss", 2, math.inf), ("test_accuracy", 20, 0.5)]
        door.train(run_id, norms=norms, metrics=metrics, logs=["one", "two"])
    return {"run_id": sweep["runs"][0], "sweep_id": sweep["id"]}


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/v1/runs", {"limit": 3}),
        ("/v1/runs/{run_id}", {}),
        ("/v1/runs/{run_id}/metrics", {}),
        ("/v1/runs/{run_id}/hidden-norms", {"include_profile": "true"}),
        ("/v1/runs/{run_id}/logs", {}),
        ("/v1/runs/{run_id}/attempts", {}),
        ("/v1/runs/{run_id}/checkpoints", {}),
        ("/v1/sweeps", {}),
        ("/v1/sweeps/{sweep_id}", {}),
        ("/v1/compare/hidden-norms", {"runs": "true"}),
        ("/v1/compare/stability", {}),
        ("/v1/workers", {}),
        ("/metrics", {}),
    ],
)
def test_answers_about_real_runs_keep_to_the_description(
    door: Any, full: dict[str, Any], path: str, query: dict[str, Any]
) -> None:
    ids = {name: value for name, value in full.items() if f"{{{name}}}" in path}
    case = schema[path]["GET"].Case(path_parameters=ids, query=query)
    answer = case.call(headers={"Authorization": door.http.headers["Authorization"]})
    assert answer.status_code == 200
    case.validate_response(answer, checks=CHECKS[:5])
