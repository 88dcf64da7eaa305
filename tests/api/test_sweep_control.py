"""Is a sweep steered as one: listed beside its grid, estimated, paused, resumed, and extended by seeds?"""

from typing import Any
from uuid import UUID

from sqlalchemy import func, select, text, update

from store import leases
from store.status import FailureClass, Status
from store.tables import AttemptRow, OutboxRow, RunRow

GRID = {"model.n_layers": [1, 2], "training.seed": [0, 1]}


def post(door: Any, path: str, status: int = 202, **body: Any) -> dict[str, Any]:
    answer = door.http.post(f"/v1/sweeps{path}", json=body)
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


def runs_of(door: Any, sweep: dict[str, Any]) -> list[dict[str, Any]]:
    found = {r["id"]: r for r in door.http.get(f"/v1/runs?sweep_id={sweep['id']}&limit=200").json()["items"]}
    return [found[run_id] for run_id in sweep["runs"]]


def claim(door: Any, run_id: str) -> leases.Claim:
    with door.sessions() as session:
        claimed = leases.claim(session, UUID(run_id), worker_id="w", lease_s=60, host="h", device="cpu")
        session.commit()
    assert claimed is not None
    return claimed


def test_a_list_is_crossed_with_the_grid_and_equal_cells_are_one(fresh: Any) -> None:
    listed = [
        {"model.cell": "rotrnn", "training.learning_rate": 0.01},
        {"model.cell": "lru", "training.learning_rate": 0.1},
        {"model.cell": {"name": "lru"}, "training.learning_rate": 0.1},
    ]
    made = post(fresh, "", grid={"training.seed": [0, 1]}, combinations=listed)
    shown = [(r["cell"], r["config"]["training"]["learning_rate"], r["seed"]) for r in runs_of(fresh, made)]
    assert shown == [("rotrnn", 0.01, 0), ("rotrnn", 0.01, 1), ("lru-learned", 0.1, 0), ("lru-learned", 0.1, 1)]
    assert made["combinations"] == listed
    plan = post(fresh, "", 200, grid={"training.seed": [0, 1]}, combinations=listed, dry_run=True)
    assert (plan["total"], plan["merged"]) == (4, 2)


def test_a_list_that_contradicts_the_grid_or_is_too_long_is_refused(fresh: Any) -> None:
    twice = post(fresh, "", 422, grid={"training.seed": [0]}, combinations=[{}, {"training.seed": 1}])
    assert twice["field"] == "combinations.1"
    many = [{"training.learning_rate": 1e-4 * n} for n in range(1, 102)]
    assert "10000" in post(fresh, "", 422, grid={"training.seed": list(range(100))}, combinations=many)["remedy"]
    wrong = post(fresh, "", 422, grid={}, combinations=[{"training.nothing": 1}])
    assert "training.nothing" in wrong["detail"]
    assert fresh.stored()["runs"] == 0


def test_a_plan_says_what_the_new_runs_take_by_the_pace_of_runs_like_them(fresh: Any) -> None:
    parts = {"training": {"steps": 100, "warmup_steps": 0}}
    first = post(fresh, "", config=parts, grid={"model.n_layers": [1], "training.seed": [0]})
    fresh.train(UUID(first["runs"][0]))
    with fresh.sessions() as session:
        lasted = {
            "training_started_at": func.clock_timestamp(),
            "ended_at": func.clock_timestamp() + text("interval '50 s'"),
        }
        session.execute(update(AttemptRow).values(lasted))
        session.commit()
    anew = post(fresh, "", 200, config=parts, grid=GRID, dry_run=True)["cost"]
    assert (anew["runs"], anew["steps"], anew["estimated_runs"]) == (4, 400, 2)
    cost = post(fresh, "", 200, config=parts, grid=GRID, dedupe="reuse", dry_run=True)["cost"]
    assert (cost["runs"], cost["steps"], cost["estimated_runs"]) == (3, 300, 1)
    assert 49.9 < cost["device_seconds"] < 50.1
    deepest = post(fresh, "", 200, config=parts, grid={"model.n_layers": [2]}, dry_run=True)["cost"]
    assert (deepest["parameters"], deepest["device_seconds"]) == (cost["parameters"], None)


def test_a_paused_sweep_stands_still_and_goes_on_when_resumed(fresh: Any) -> None:
    made = post(fresh, "", grid=GRID)
    training, done = made["runs"][:2]
    claim(fresh, training)
    fresh.train(UUID(done))
    assert post(fresh, f"/{made['id']}/pause")["counts"] == {"paused": 2, "running": 1, "succeeded": 1}
    with fresh.sessions() as session:
        assert session.scalars(select(RunRow.pause_requested).where(RunRow.id == UUID(training))).one()
        before = session.scalar(select(func.count()).select_from(OutboxRow))
    again = post(fresh, f"/{made['id']}/resume")
    assert again["counts"] == {"queued": 2, "running": 1, "succeeded": 1}
    with fresh.sessions() as session:
        assert not session.scalars(select(RunRow.pause_requested).where(RunRow.id == UUID(training))).one()
        assert session.scalar(select(func.count()).select_from(OutboxRow)) == before + 2
    for run_id in made["runs"][2:]:
        claim(fresh, run_id)


def test_pausing_a_sweep_leaves_the_runs_that_it_reuses(fresh: Any) -> None:
    owner = post(fresh, "", grid={"training.seed": [0, 1]})
    other = post(fresh, "", grid={"training.seed": [0, 1, 2]}, dedupe="reuse")
    assert post(fresh, f"/{other['id']}/pause")["counts"] == {"queued": 2, "paused": 1}
    assert fresh.http.get(f"/v1/sweeps/{owner['id']}").json()["counts"] == {"queued": 2}


def test_a_sweep_is_extended_by_seeds_in_every_cell_once(fresh: Any) -> None:
    made = post(fresh, "", grid=GRID)
    longer = post(fresh, f"/{made['id']}/extend", seeds=[1, 2, 3])
    assert longer["total"] == 8
    assert longer["runs"][:4] == made["runs"]
    assert [(run["depth"], run["seed"]) for run in runs_of(fresh, longer)[4:]] == [(1, 2), (1, 3), (2, 2), (2, 3)]
    assert {run["sweep_id"] for run in runs_of(fresh, longer)} == {made["id"]}
    assert post(fresh, f"/{made['id']}/extend", seeds=[0, 3])["total"] == 8
    with fresh.sessions() as session:
        hinted = session.scalars(select(OutboxRow.run_id)).all()
    assert {str(id) for id in hinted} == set(longer["runs"])


def test_extending_with_a_key_twice_extends_once_and_may_reuse(fresh: Any) -> None:
    made, other = post(fresh, "", grid={"training.seed": [0]}), post(fresh, "", grid={"training.seed": [7]})
    answers = [
        fresh.http.post(
            f"/v1/sweeps/{made['id']}/extend",
            json={"seeds": [7], "dedupe": "reuse"},
            headers={"Idempotency-Key": "k"},
        ).json()
        for _ in range(2)
    ]
    assert answers[0] == answers[1]
    assert (answers[0]["runs"][1], answers[0]["reused"]) == (other["runs"][0], 1)


def test_only_a_result_fills_a_cell_and_the_time_left_follows_the_running_ones(fresh: Any) -> None:
    made = post(fresh, "", config={"training": {"steps": 100, "warmup_steps": 0}}, grid=GRID)
    fresh.train(UUID(made["runs"][0]))
    fresh.train(UUID(made["runs"][1]), status=Status.DIVERGED)
    lost = claim(fresh, made["runs"][2])
    with fresh.sessions() as session:
        leases.finish(
            session,
            lost.run_id,
            lost.attempt,
            lost.token,
            status=Status.FAILED,
            failure_class=FailureClass.CODE_ERROR,
            reason="x",
        )
        session.commit()
    shown = fresh.http.get(f"/v1/sweeps/{made['id']}").json()
    assert (shown["filled"], shown["seconds_left"]) == (2, None)
    fresh.train(UUID(made["runs"][3]), metrics=[("train_loss", 25, 1.0)], status=None)
    with fresh.sessions() as session:
        ago = func.clock_timestamp() - text("interval '50 s'")
        session.execute(update(AttemptRow).values(training_started_at=ago))
        session.execute(update(RunRow).where(RunRow.status != Status.RUNNING).values(step=0))
        session.commit()
    left = fresh.http.get(f"/v1/sweeps/{made['id']}").json()["seconds_left"]
    assert 149 < left < 200
