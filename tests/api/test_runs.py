"""Does a submitted run get exactly what was promised: one row, one answer, and only the moves its state allows?"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from rotrnn_core.config import RunConfig
from store import idempotency
from store.status import Status


def test_a_submitted_run_is_queued_with_its_complete_configuration(door: Any) -> None:
    answer = door.http.post(
        "/v1/runs",
        json={"config": {"model": {"cell": "lru"}, "training": {"seed": 3}}, "name": "one", "priority": "high"},
    )
    run = answer.json()
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/v1/runs/{run['id']}"
    assert run == door.http.get(answer.headers["location"]).json()
    assert run["config"] == RunConfig.from_dict({"model": {"cell": "lru"}, "training": {"seed": 3}}).to_dict()
    assert run["created_at"].endswith("Z")
    expected = {
        "name": "one", "sweep_id": None, "status": "queued", "failure_class": None, "reason": None,
        "cell": "lru-learned", "task": "listops-short", "depth": 2, "seed": 3, "step": 0, "total_steps": 400,
        "attempt": 0, "priority": "high", "started_at": None, "finished_at": None, "parameter_count": None,
        "device": None, "divergence": None, "seconds_left": None, "latest": {},
    }  # fmt: skip
    assert {name: run[name] for name in expected} == expected


def test_the_row_and_its_hint_are_committed_before_the_answer(fresh: Any) -> None:
    fresh.submit()
    assert fresh.stored() == dict.fromkeys(fresh.stored(), 0) | {"runs": 1, "outbox": 1, "events": 1}


def test_equal_configurations_have_one_hash_however_they_are_written(door: Any) -> None:
    written = [
        {},
        {"model": {"cell": "rotrnn"}},
        {"model": {"cell": {"name": "rotrnn", "max_phase": 6.28}, "dropout": 0}},
    ]
    hashes = {door.http.post("/v1/runs", json={"config": config}).json()["config_hash"] for config in written}
    assert len(hashes) == 1
    other = door.http.post("/v1/runs", json={"config": {"training": {"seed": 1}}}).json()["config_hash"]
    assert other not in hashes


def test_the_same_key_and_body_give_the_same_run(fresh: Any) -> None:
    body = {"config": {"training": {"seed": 5}}}
    first, again = (fresh.http.post("/v1/runs", json=body, headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert (again.status_code, again.json(), again.headers["location"]) == (
        202,
        first.json(),
        first.headers["location"],
    )
    assert fresh.stored()["runs"] == 1


def test_the_same_key_with_another_body_is_refused(fresh: Any) -> None:
    fresh.http.post("/v1/runs", json={"config": {}}, headers={"Idempotency-Key": "k"})
    answer = fresh.http.post("/v1/runs", json={"config": {}, "name": "other"}, headers={"Idempotency-Key": "k"})
    assert (answer.status_code, answer.json()["field"], answer.json()["value"]) == (422, "Idempotency-Key", "k")
    assert fresh.stored()["runs"] == 1


def test_a_key_that_was_refused_once_is_still_free(fresh: Any) -> None:
    headers = {"Idempotency-Key": "k"}
    assert fresh.http.post("/v1/runs", json={"config": {"model": 3}}, headers=headers).status_code == 422
    assert fresh.http.post("/v1/runs", json={"config": {}}, headers=headers).status_code == 202


def test_a_key_belongs_to_one_kind_of_thing(fresh: Any) -> None:
    headers = {"Idempotency-Key": "k"}
    assert fresh.http.post("/v1/runs", json={"config": {}}, headers=headers).status_code == 202
    assert fresh.http.post("/v1/sweeps", json={"grid": {}}, headers=headers).status_code == 202


def test_a_key_whose_run_was_deleted_makes_no_other(fresh: Any) -> None:
    headers = {"Idempotency-Key": "k"}
    run_id = fresh.http.post("/v1/runs", json={"config": {}}, headers=headers).json()["id"]
    fresh.http.post(f"/v1/runs/{run_id}/cancel")
    assert fresh.http.delete(f"/v1/runs/{run_id}").status_code == 204
    answer = fresh.http.post("/v1/runs", json={"config": {}}, headers=headers)
    assert (answer.status_code, answer.json()["field"]) == (409, "Idempotency-Key")


def test_twenty_posts_at_once_with_one_key_make_one_run(fresh: Any) -> None:
    def post(_: int) -> tuple[int, str]:
        answer = fresh.http.post("/v1/runs", json={"config": {}}, headers={"Idempotency-Key": "k"})
        return answer.status_code, answer.json()["id"]

    with ThreadPoolExecutor(20) as pool:
        answers = set(pool.map(post, range(20)))
    assert len(answers) == 1
    assert fresh.stored() | {"events": 1} == dict.fromkeys(fresh.stored(), 0) | {
        "runs": 1, "outbox": 1, "events": 1, "idempotency_keys": 1,
    }  # fmt: skip


def test_a_key_whose_first_request_is_still_on_its_way_says_so(fresh: Any) -> None:
    headers = {"Idempotency-Key": "k"}
    with fresh.sessions() as other:
        assert idempotency.claim(other, "runs", "k", "another body") is None
        answer = fresh.http.post("/v1/runs", json={"config": {}}, headers=headers)
        assert (answer.status_code, answer.json()["field"], answer.headers["retry-after"]) == (
            409, "Idempotency-Key", "1",
        )  # fmt: skip
        other.rollback()
    assert fresh.http.post("/v1/runs", json={"config": {}}, headers=headers).status_code == 202
    assert fresh.stored()["runs"] == 1


def test_a_crash_between_the_row_and_the_answer_leaves_the_key_free(
    fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = {"Idempotency-Key": "k"}
    with monkeypatch.context() as patched:
        patched.setattr("api.routers.runs.run_read", lambda *_: 1 / 0)
        assert fresh.http.post("/v1/runs", json={"config": {}}, headers=headers).status_code == 500
    assert fresh.stored()["runs"] == 0
    first, again = (fresh.http.post("/v1/runs", json={"config": {}}, headers=headers).json()["id"] for _ in range(2))
    assert first == again
    assert fresh.stored()["runs"] == 1


def test_a_run_that_exists_is_taken_where_that_is_asked_for_and_its_key_keeps_to_it(fresh: Any) -> None:
    first = fresh.submit()
    config = fresh.http.get(f"/v1/runs/{first}").json()["config"]

    def asked(seed: int, **fields: str) -> str:
        wanted = {**config, "training": {**config["training"], "seed": seed}}
        body = {"config": wanted, "dedupe": "reuse"} | fields
        return fresh.http.post("/v1/runs", json=body, headers={"Idempotency-Key": f"{seed}"}).json()["id"]

    assert [asked(config["training"]["seed"]) for _ in range(2)] == [str(first)] * 2
    other = asked(977)
    assert other != str(first)
    assert fresh.http.post(f"/v1/runs/{first}/cancel").status_code == 202
    assert asked(config["training"]["seed"]) == str(first), "the key stands for what it stood for"
    body = {"config": config, "dedupe": "reuse"}
    assert fresh.http.post("/v1/runs", json=body).json()["id"] not in (str(first), other), (
        "a cancelled run is no result"
    )
    assert fresh.stored()["runs"] == 3


def test_the_history_tells_what_happened_and_the_attempts_who_tried(fresh: Any) -> None:
    run_id = fresh.submit()
    fresh.train(run_id)
    path = f"/v1/runs/{run_id}"
    told = fresh.http.get(f"{path}/history").json()
    assert [event["kind"] for event in told["items"]] == ["submitted", "claimed", "started", "succeeded"]
    rest = fresh.http.get(f"{path}/history", params={"after": told["items"][1]["id"]}).json()
    assert rest["items"] == told["items"][2:]
    last = fresh.http.get(f"{path}/history", params={"after": told["next_cursor"]}).json()
    assert last == {"items": [], "next_cursor": told["next_cursor"]}
    (tried,) = fresh.http.get(f"{path}/attempts").json()["items"]
    assert (tried["worker_id"], tried["host"], tried["device"], tried["outcome"]) == ("w", "h", "cpu", "succeeded")
    assert tried["started_at"] <= tried["training_started_at"] <= tried["ended_at"]
    assert (tried["resumed_from_step"], tried["resumed_from_attempt"]) == (0, None)


def test_more_requests_at_once_than_connections_are_all_served(fresh: Any) -> None:
    with ThreadPoolExecutor(60) as pool:
        answers = list(pool.map(lambda _: fresh.http.get("/v1/runs").status_code, range(120)))
    assert set(answers) == {200}


@pytest.mark.parametrize(
    ("moves", "status"),
    [
        (["cancel"], "cancelled"),
        (["pause"], "paused"),
        (["pause", "resume"], "queued"),
        (["pause", "cancel"], "cancelled"),
        (["cancel", "resume"], "queued"),
        (["pause", "pause"], "paused"),
    ],
)
def test_a_waiting_run_is_steered_with_no_worker_alive(door: Any, moves: list[str], status: str) -> None:
    run_id = door.submit()
    answers = [door.http.post(f"/v1/runs/{run_id}/{move}") for move in moves]
    assert {answer.status_code for answer in answers} == {202}
    assert answers[-1].json()["status"] == status
    assert door.http.get(f"/v1/runs/{run_id}").json()["status"] == status


def test_a_running_run_is_asked_to_stop(door: Any) -> None:
    run_id = door.submit()
    door.train(run_id, status=None)
    assert door.http.post(f"/v1/runs/{run_id}/cancel").json()["status"] == "cancelling"


@pytest.mark.parametrize("move", ["cancel", "pause", "resume"])
def test_a_succeeded_run_stays_as_it_is(door: Any, move: str) -> None:
    run_id = door.submit()
    door.train(run_id)
    answer = door.http.post(f"/v1/runs/{run_id}/{move}")
    assert (answer.status_code, answer.json()["field"], answer.json()["value"]) == (409, "status", "succeeded")
    assert door.http.get(f"/v1/runs/{run_id}").json()["status"] == "succeeded"


def test_only_an_ended_run_is_deleted_and_then_with_all_it_measured(fresh: Any) -> None:
    run_id = fresh.submit()
    answer = fresh.http.delete(f"/v1/runs/{run_id}")
    assert (answer.status_code, answer.json()["value"]) == (409, "queued")
    fresh.train(run_id, metrics=[("train_loss", 1, 0.5)], norms={0: [1, 1]}, logs=["hello"])
    assert fresh.http.delete(f"/v1/runs/{run_id}").status_code == 204
    assert fresh.http.get(f"/v1/runs/{run_id}").status_code == 404
    with fresh.sessions() as session:
        for table in ("metrics", "hidden_norms", "logs", "attempts", "runs"):
            assert session.execute(text(f"SELECT count(*) FROM {table}")).scalar_one() == 0


def test_a_diverged_run_says_where(door: Any) -> None:
    run_id = door.submit()
    door.train(run_id, status=Status.DIVERGED)
    run = door.http.get(f"/v1/runs/{run_id}").json()
    assert (run["status"], run["divergence"]) == ("diverged", {"step": 7, "layer": 0, "kind": "activation"})
    assert (run["parameter_count"], run["device"]) == (123, "cpu")


def test_the_latest_values_are_those_of_the_last_step(door: Any) -> None:
    run_id = door.submit()
    points = [
        ("train_loss", 1, 2.5),
        ("train_loss", 20, float("nan")),
        ("validation_accuracy", 10, 0.25),
        ("learning_rate", 1, 1.0),
    ]
    door.train(run_id, metrics=points, status=None)
    run = door.http.get(f"/v1/runs/{run_id}").json()
    assert run["latest"] == {"train_loss": "NaN", "validation_accuracy": 0.25}
    assert run["step"] == 20
    assert run["seconds_left"] > 0


def test_pages_follow_each_other_without_gap_or_repeat_while_runs_are_added(fresh: Any) -> None:
    submitted = [str(fresh.submit()) for _ in range(7)]
    seen: list[str] = []
    cursor = None
    while True:
        page = fresh.http.get("/v1/runs", params={"limit": 3} | ({"cursor": cursor} if cursor else {})).json()
        seen += [run["id"] for run in page["items"]]
        cursor = page["next_cursor"]
        fresh.submit()
        if cursor is None:
            break
    assert seen == submitted[::-1]


def test_filters_choose_by_every_field(fresh: Any) -> None:
    wanted = fresh.submit(model={"cell": "lru", "n_layers": 3}, training={"seed": 2**53 - 1})
    other = fresh.submit()
    fresh.http.post(f"/v1/runs/{other}/cancel")

    def ids(query: str) -> list[str]:
        return [run["id"] for run in fresh.http.get(f"/v1/runs?{query}").json()["items"]]

    for query in (
        "status=queued",
        "cell=lru-learned",
        "depth=3",
        f"seed={2**53 - 1}",
        "depth=3&depth=4&cell=lru-learned",
    ):
        assert ids(query) == [str(wanted)]
    for query in (
        "status=queued&status=cancelled",
        "task=listops-short",
        "cell=rotrnn&cell=lru-learned",
        "depth=2&depth=3",
    ):
        assert ids(query) == [str(other), str(wanted)]
    for query in ("status=failed", "cell=lru-tied", "task=listops", "depth=3&cell=rotrnn", f"sweep_id={UUID(int=0)}"):
        assert ids(query) == []


@pytest.mark.parametrize("path", ["/v1/runs?limit=200", "/v1/sweeps?limit=200"])
def test_a_list_needs_as_many_queries_for_fifty_as_for_one(fresh: Any, path: str) -> None:
    def count() -> int:
        with fresh.statements() as seen:
            assert fresh.http.get(path).status_code == 200
        return len(seen)

    fresh.http.post("/v1/sweeps", json={"grid": {"training.seed": [0]}})
    one = count()
    for n in range(10):
        fresh.http.post("/v1/sweeps", json={"grid": {"training.seed": [0, 1, 2, 3, 4]}, "name": str(n)})
    assert count() == one
    assert one <= 6
