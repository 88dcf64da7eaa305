"""Is everything that cannot be right refused, by a problem document that says what to do, with nothing stored?"""

from typing import Any

import pytest

GRID_OF_100_000 = {"training.seed": list(range(1000)), "model.n_layers": list(range(1, 101))}

BAD_CONFIGS: dict[str, tuple[Any, str, Any]] = {
    "an unknown section": ({"modle": {}}, "modle", "{}"),
    "an unknown field": ({"model": {"d_modle": 3}}, "model.d_modle", 3),
    "an unknown cell": ({"model": {"cell": "lstm"}}, "model.cell.name", "lstm"),
    "an unknown option of a cell": ({"model": {"cell": {"name": "lru", "n_heads": 2}}}, "model.cell.n_heads", 2),
    "an unknown task": ({"task": {"name": "listopz"}}, "task.name", "listopz"),
    "a negative width": ({"model": {"d_model": -1}}, "model.d_model", -1),
    "a state that does not split into heads": ({"model": {"d_state": 30}}, "model.d_state", 30),
    "a wrong type": ({"training": {"steps": "many"}}, "training.steps", "many"),
    "a seed that JSON cannot keep exact": ({"training": {"seed": 2**60}}, "training.seed", str(2**60)),
    "a decay_min that is not below decay_max": (
        {"model": {"cell": {"name": "rotrnn", "decay_min": 0.99, "decay_max": 0.9}}},
        "model.cell.decay_min",
        0.99,
    ),
}


def assert_problem(answer: Any, status: int, field: str | None, value: Any = ...) -> None:
    """The answer is a problem document that names field, value and remedy."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert problem["type"].startswith("urn:rotbench:problem:")
    assert problem["title"]
    assert problem["detail"].endswith(".")
    assert problem["remedy"]
    if field is not None:
        assert problem["field"] == field
        assert "value" in problem
    if value is not ...:
        assert problem["value"] == value


@pytest.mark.parametrize("case", BAD_CONFIGS)
def test_a_run_that_cannot_be_trained_is_refused(door: Any, case: str) -> None:
    config, field, value = BAD_CONFIGS[case]
    before = door.stored()
    assert_problem(door.http.post("/v1/runs", json={"config": config}), 422, field, value)
    assert door.stored() == before


@pytest.mark.parametrize("case", BAD_CONFIGS)
def test_one_bad_combination_refuses_the_whole_sweep(door: Any, case: str) -> None:
    config, field, value = BAD_CONFIGS[case]
    (section, bad), *_ = config.items()
    before = door.stored()
    answer = door.http.post("/v1/sweeps", json={"grid": {"probe.every": [1, 2], section: [{}, bad]}})
    assert_problem(answer, 422, field, value if section != "modle" else ...)
    assert door.stored() == before


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_is_not_finite_is_refused_by_name(door: Any, literal: str) -> None:
    before = door.stored()
    for path, body, field in (
        ("/v1/runs", '{"config": {"training": {"learning_rate": %s}}}', "training.learning_rate"),
        ("/v1/runs", '{"config": {"training": {"steps": %s}}}', "training.steps"),
        ("/v1/runs", '{"config": {}, "name": %s}', "name"),
        ("/v1/sweeps", '{"grid": {"model.dropout": [0.1, %s]}}', "model.dropout"),
        ("/v1/sweeps", '{"config": {"probe": {"every": %s}}, "grid": {"training.seed": [1]}}', "probe.every"),
    ):
        answer = door.http.post(path, content=body % literal, headers={"Content-Type": "application/json"})
        assert_problem(answer, 422, field, "Infinity" if literal == "1e999" else literal)
    assert door.stored() == before


@pytest.mark.parametrize(
    ("grid", "field"),
    [
        (GRID_OF_100_000, "grid"),
        ({f"training.x{n}": list(range(10)) for n in range(30)}, "grid"),
        ({f"training.x{n}": [0, 1] for n in range(9000)}, "grid"),
        ({"training.seed": []}, "grid.training.seed"),
        ({"model.cell": ["lru"], "model.cell.normaliser": ["tied"]}, "grid.model.cell.normaliser"),
        ({"training.sead": [1]}, "training.sead"),
        ({"": [1]}, ""),
        ({"training.seed.x": [1]}, "training.seed"),
        ({"training.seed": 3}, "grid.training.seed"),
        ({"training.seed": {"from": 1}}, "grid.training.seed"),
    ],
)
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_grid_that_cannot_be_meant_is_refused(door: Any, grid: Any, field: str, dry_run: bool) -> None:
    before = door.stored()
    assert_problem(door.http.post("/v1/sweeps", json={"grid": grid, "dry_run": dry_run}), 422, field)
    assert door.stored() == before


@pytest.mark.parametrize("dry_run", ["false", 0, None, {}])
def test_a_wish_for_a_dry_run_is_never_guessed(door: Any, dry_run: Any) -> None:
    before = door.stored()
    assert_problem(door.http.post("/v1/sweeps", json={"grid": {}, "dry_run": dry_run}), 422, "dry_run")
    assert door.stored() == before


def test_a_grid_that_is_too_large_says_how_large_it_is_and_what_is_allowed(door: Any) -> None:
    problem = door.http.post("/v1/sweeps", json={"grid": GRID_OF_100_000}).json()
    assert problem["value"] == "100000 runs"
    assert "10000" in problem["remedy"]


@pytest.mark.parametrize("said", [True, False], ids=["with Content-Length", "in chunks"])
def test_a_body_of_fifty_megabytes_is_refused(door: Any, said: bool) -> None:
    body = b'{"config": {}, "name": "' + b"x" * 50_000_000 + b'"}'
    before = door.stored()
    for path in ("/v1/runs", "/v1/sweeps"):
        content = body if said else (body[i : i + 65536] for i in range(0, len(body), 65536))
        answer = door.http.post(path, content=content, headers={"Content-Type": "application/json"})
        assert_problem(answer, 413, "body")
    assert door.stored() == before


def test_a_body_at_the_limit_passes(door: Any) -> None:
    body = b'{"config": {}, "priority": "low"}'
    padded = body + b" " * (1_000_000 - len(body))
    headers = {"Content-Type": "application/json"}
    assert door.http.post("/v1/runs", content=padded, headers=headers).status_code == 202
    assert_problem(door.http.post("/v1/runs", content=padded + b" ", headers=headers), 413, "body")


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        (b"", 422, "body"),
        (b"not json", 422, "body"),
        (b"[1, 2]", 422, "body"),
        (b'"text"', 422, "body"),
        (b'{"config": {}, "name": "\xff"}', 400, None),
        (b"[" * 100_000, 400, None),
        (b'{"config": ' + b"9" * 5000 + b"}", 400, None),
        (b'{"config": {}, "colour": "red"}', 422, "colour"),
        (b'{"name": "no config"}', 422, "config"),
        (b'{"config": 3}', 422, "config"),
        (b'{"config": {}, "name": ""}', 422, "name"),
        (b'{"config": {}, "name": "a\\u0000b"}', 422, "name"),
        (b'{"config": {}, "name": "\\ud800"}', 422, "name"),
        (b'{"config": {"\\ud800\\u0000": 1}}', 422, "\ud800\x00"),
        (b'{"config": {"task": {"name": "\\ud800"}}}', 422, "task.name"),
        (b'{"config": {}, "priority": "urgent"}', 422, "priority"),
        (b'{"config": {}, "priority": 1}', 422, "priority"),
    ],
)
def test_a_body_that_is_no_order_is_refused(door: Any, body: bytes, status: int, field: str | None) -> None:
    before = door.stored()
    answer = door.http.post("/v1/runs", content=body, headers={"Content-Type": "application/json"})
    assert_problem(answer, status, field)
    assert door.stored() == before


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic YTpi", "bearer \x00", "Bearer " + "x" * 10_000]
)
def test_nobody_comes_in_without_the_token(door: Any, header: str | None) -> None:
    before = door.stored()
    for method, path in (("GET", "/v1/runs"), ("POST", "/v1/runs"), ("GET", "/v1/tasks"), ("GET", "/v1/workers")):
        headers = {"Authorization": header or ""}
        answer = door.http.request(method, path, headers=headers, json={"config": {}} if method == "POST" else None)
        assert_problem(answer, 401, "Authorization")
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert door.stored() == before


def test_a_token_is_never_shown_back(door: Any) -> None:
    answer = door.http.get("/v1/runs", headers={"Authorization": "Bearer my-secret"})
    assert "my-secret" not in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "/v1/runs/{id}",
        "/v1/runs/{id}/metrics",
        "/v1/runs/{id}/hidden-norms",
        "/v1/runs/{id}/logs",
        "/v1/runs/{id}/attempts",
        "/v1/runs/{id}/checkpoints",
        "/v1/sweeps/{id}",
        "/v1/compare/hidden-norms?sweep_id={id}",
        "/v1/compare/stability?sweep_id={id}",
    ],
)
@pytest.mark.parametrize("id", ["00000000-0000-4000-8000-000000000000", "42", "not-an-id", "%00"])
def test_an_unknown_id_is_named(door: Any, path: str, id: str) -> None:
    field = "sweep_id" if "sweep" in path else "run_id"
    assert_problem(door.http.get(path.format(id=id)), 404 if len(id) == 36 else 422, field, id.replace("%00", "\x00"))


@pytest.mark.parametrize("action", ["cancel", "pause", "resume"])
def test_an_unknown_run_cannot_be_steered(door: Any, action: str) -> None:
    path = f"/v1/runs/00000000-0000-4000-8000-000000000000/{action}"
    assert_problem(door.http.post(path), 404, "run_id")


@pytest.mark.parametrize("cursor", ["made up", "AAAA", "é", "x" * 32, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "\x00"])
def test_a_cursor_made_up_is_refused_or_harmless(door: Any, cursor: str) -> None:
    for path in ("/v1/runs", "/v1/sweeps"):
        answer = door.http.get(path, params={"cursor": cursor})
        if answer.status_code != 200:
            assert_problem(answer, 422, "cursor", cursor)
        elif answer.json()["items"] != []:
            pytest.fail("a cursor from before all time shows nothing")
    run_id = door.submit()
    assert_problem(door.http.get(f"/v1/runs/{run_id}/logs", params={"after": cursor}), 422, "after", cursor)


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/runs?limit=0", "limit"),
        ("/v1/runs?limit=100000", "limit"),
        ("/v1/runs?limit=many", "limit"),
        ("/v1/runs?status=asleep", "status"),
        ("/v1/runs?cell=lstm", "cell"),
        ("/v1/runs?task=%00", "task"),
        ("/v1/runs?depth=99999999999", "depth"),
        ("/v1/runs?seed=-1", "seed"),
        ("/v1/runs?sweep_id=4", "sweep_id"),
        ("/v1/compare/hidden-norms?statistic=median", "statistic"),
        ("/v1/compare/hidden-norms?layer=-1", "layer"),
    ],
)
def test_a_query_out_of_range_is_refused(door: Any, path: str, field: str) -> None:
    assert_problem(door.http.get(path), 422, field)


def test_what_is_not_there_and_what_is_not_allowed_are_problems_too(door: Any) -> None:
    assert_problem(door.http.get("/nowhere"), 404, None)
    answer = door.http.put("/v1/runs", json={})
    assert_problem(answer, 405, None)
    assert answer.headers["allow"]


@pytest.mark.parametrize("key", ["", "two words", "x" * 201])
def test_an_idempotency_key_that_cannot_be_kept_is_refused(door: Any, key: str) -> None:
    before = door.stored()
    answer = door.http.post("/v1/runs", json={"config": {}}, headers={"Idempotency-Key": key})
    assert_problem(answer, 422, "Idempotency-Key")
    assert door.stored() == before
