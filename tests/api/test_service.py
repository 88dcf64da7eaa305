"""Does the process itself behave: light to import, alive without a database, counted, and described?"""

import json
import os
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
import uvicorn
from fastapi.testclient import TestClient

from api.app import create_app
from api.documentation import TAGS
from api.problems import wire_value
from api.settings import Settings
from rotrnn_core.config import CELLS, TASKS, RunConfig
from store import workers

AWAY = "postgresql+psycopg://nobody:nothing@127.0.0.1:1/none"


def test_the_door_never_imports_torch() -> None:
    code = "import sys, api.main; assert 'torch' not in sys.modules"
    environment = os.environ | {"ROTBENCH_DATABASE_URL": AWAY}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)


def test_settings_name_what_is_missing_and_never_show_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTBENCH_DATABASE_URL", AWAY)
    monkeypatch.setenv("ROTBENCH_API_POOL_SIZE", "none")
    with pytest.raises(ValueError, match="api_pool_size") as refused:
        Settings()
    assert "nothing" in AWAY
    assert "nothing" not in "".join(traceback.format_exception(refused.value))


def test_without_a_database_the_process_is_alive_but_not_ready() -> None:
    with TestClient(create_app(Settings(database_url=AWAY)), raise_server_exceptions=False) as http:
        assert http.get("/livez").json() == {"status": "alive"}
        for path in ("/readyz", "/v1/runs"):
            answer = http.get(path, headers={"Authorization": "Bearer x"})
            assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
            assert answer.headers["retry-after"]
        assert "rotbench_database_up 0.0" in http.get("/metrics").text


def test_an_unmigrated_database_is_not_ready(empty_database_url: str) -> None:
    with TestClient(create_app(Settings(database_url=empty_database_url))) as http:
        problem = http.get("/readyz").json()
        assert (problem["status"], problem["type"]) == (503, "urn:rotbench:problem:schema-outdated")
        assert "store.migrate" in problem["remedy"]


def test_a_migrated_database_is_ready_and_asks_for_no_token(door: Any) -> None:
    for path in ("/livez", "/readyz", "/metrics", "/docs", "/openapi.json"):
        assert door.http.get(path, headers={"Authorization": ""}).status_code == 200


def test_requests_and_runs_are_counted(open_door: Any) -> None:
    fresh = open_door()
    run_id = fresh.submit()
    fresh.http.get(f"/v1/runs/{run_id}")
    fresh.http.get("/v1/runs/nonsense")
    text = fresh.http.get("/metrics").text
    assert 'rotbench_runs{status="queued"} 1.0' in text
    assert 'rotbench_runs{status="failed"} 0.0' in text
    assert 'rotbench_http_requests_total{method="GET",route="/v1/runs/{run_id}",status="200"} 1.0' in text
    assert 'rotbench_http_requests_total{method="GET",route="/v1/runs/{run_id}",status="422"} 1.0' in text
    assert 'rotbench_http_request_duration_seconds_count{method="POST",route="/v1/runs"} 1.0' in text
    assert str(run_id) not in text


def test_a_defect_is_a_problem_that_tells_no_secrets(door: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.routers.runs.runs.page", lambda *_: 1 / 0)
    answer = door.http.get("/v1/runs")
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert "ZeroDivision" not in answer.text


def test_the_catalogue_is_that_of_the_configuration(door: Any) -> None:
    tasks = door.http.get("/v1/tasks").json()["items"]
    assert [task["name"] for task in tasks] == list(TASKS)
    models = {model["name"]: model for model in door.http.get("/v1/models").json()["items"]}
    assert list(models) == list(CELLS)
    assert models["rotrnn"]["labels"][0] == "rotrnn"
    assert set(models["lru"]["labels"]) == {"lru-learned", "lru-tied"}
    assert {o["name"]: o["choices"] for o in models["lru"]["options"]}["normaliser"] == ["learned", "tied"]
    recipes = door.http.get("/v1/recipes").json()["items"]
    assert recipes
    for recipe in recipes:
        assert RunConfig.from_dict(recipe["config"]).to_dict() == recipe["config"]
        assert recipe["mark"] in ("S", "D", "U")


def test_a_run_that_was_tested_below_its_floor_is_flagged(fresh: Any) -> None:
    found = {}
    for accuracy in (0.2, 0.3):
        run_id = fresh.submit(training={"seed": int(100 * accuracy)})
        fresh.train(run_id, metrics=[("test_accuracy", 1, accuracy)])
        found[accuracy] = fresh.http.get(f"/v1/runs/{run_id}").json()["below_floor"]
    assert found == {0.2: True, 0.3: False}
    assert fresh.http.get(f"/v1/runs/{fresh.submit()}").json()["below_floor"] is None


def test_workers_are_shown_by_the_age_of_their_beat(fresh: Any) -> None:
    run_id = fresh.submit()
    memory = workers.Memory(resident_mib=300, host_total_mib=2_000, host_available_mib=1_000)
    with fresh.sessions() as session:
        for name, run in (("one", None), ("two", run_id)):
            facts = {"host": "h", "device": "cpu", "device_uuid": name, "pid": 1, "environment": {}, "run_id": run}
            workers.beat(session, name, **facts, data=["text"] if run else [], memory=memory if run else None)
        session.commit()
    items = {item["id"]: item for item in fresh.http.get("/v1/workers").json()["items"]}
    assert (items["one"]["state"], items["two"]["state"]) == ("idle", "busy")
    assert items["two"]["run_id"] == str(run_id)
    assert 0 <= items["one"]["beat_age_s"] < 30
    told = ("data", "resident_mib", "host_total_mib", "host_available_mib")
    assert [items["two"][name] for name in told] == [["text"], 300, 2_000, 1_000]
    assert [items["one"][name] for name in told] == [[], None, None, None]


def test_a_run_whose_data_no_living_worker_has_says_what_it_waits_for(fresh: Any) -> None:
    def waits_for() -> str | None:
        shown = fresh.http.get(f"/v1/runs/{run_id}").json()["waits_for"]
        assert fresh.http.get("/v1/runs").json()["items"][0]["waits_for"] == shown
        return shown

    def beat(name: str, data: list[str]) -> None:
        with fresh.sessions() as session:
            facts = {"host": "h", "device": "cpu", "device_uuid": name, "pid": 1, "environment": {}}
            workers.beat(session, name, **facts, data=data)
            session.commit()

    run_id = fresh.submit(task={"name": "text"})
    assert waits_for() is None, "while no worker lives nothing is known"
    beat("one", ["image"])
    assert "rotbench data fetch text" in waits_for()
    beat("two", ["text"])
    assert waits_for() is None


def test_every_route_is_described_with_its_problems(door: Any) -> None:
    document = door.http.get("/openapi.json").json()
    named = {tag["name"] for tag in TAGS}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert set(operation["tags"]) <= named
            assert operation["summary"]
            assert operation["description"]
            if path.startswith("/v1"):
                assert {"401", "422", "503"} <= set(operation["responses"])
                assert operation["security"]
    assert "HTTPValidationError" not in document["components"]["schemas"]
    for body in ("RunCreate", "SweepCreate"):
        assert document["components"]["schemas"][body]["examples"]


def test_the_examples_of_the_description_are_accepted(door: Any) -> None:
    schemas = door.http.get("/openapi.json").json()["components"]["schemas"]
    for path, body in (("/v1/runs", "RunCreate"), ("/v1/sweeps", "SweepCreate")):
        for example in schemas[body]["examples"]:
            assert door.http.post(path, json=example).status_code in (200, 202)


def test_any_value_can_stand_in_a_problem() -> None:
    for value in (float("nan"), float("inf"), 10**5000, -(10**5000), 2**60, "x" * 9999, ["x"] * 9999, {}, None, True):
        assert len(json.dumps(wire_value(value), allow_nan=False)) <= 210


@pytest.fixture
def served(door: Any) -> Iterator[str]:
    """The address of the service behind a real uvicorn."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(
        uvicorn.Config(door.http.app, host="127.0.0.1", port=port, log_level="critical", lifespan="off")
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    deadline = time.monotonic() + 10
    while not server.started:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.parametrize("said", [True, False], ids=["with Content-Length", "in chunks"])
def test_a_client_that_sends_fifty_megabytes_reads_the_refusal(door: Any, served: str, said: bool) -> None:
    body = b'{"config": {}, "name": "' + b"x" * 50_000_000 + b'"}'
    chunks = (body[i : i + 65536] for i in range(0, len(body), 65536))
    headers = {"Content-Type": "application/json", "Authorization": door.http.headers["Authorization"]}
    answer = httpx2.post(f"{served}/v1/runs", content=body if said else chunks, headers=headers, timeout=30)
    assert (answer.status_code, answer.json()["field"]) == (413, "body")
    assert httpx2.get(f"{served}/livez").status_code == 200
