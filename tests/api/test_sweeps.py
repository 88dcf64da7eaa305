"""Does a sweep mean exactly its grid: every combination once, all or none, counted before it is made?"""

import hashlib
import itertools
from typing import Any
from uuid import UUID

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from api.expansion import MOST_RUNS, checked, expand
from rotrnn_core.config import ConfigError, RunConfig
from store.status import Status

CELLS = [{"name": "rotrnn", "n_heads": 4}, {"name": "lru"}, {"name": "lru", "normaliser": "tied"}]
GRID = {"model.cell": CELLS, "model.n_layers": [1, 2], "training.seed": [0, 1]}


def sweep(door: Any, **body: Any) -> dict[str, Any]:
    answer = door.http.post("/v1/sweeps", json=body)
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


def runs_of(door: Any, sweep_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = door.http.get(f"/v1/runs?sweep_id={sweep_id}&limit=200").json()["items"]
    return found


def test_a_sweep_queues_every_combination_in_the_order_of_the_grid(door: Any) -> None:
    made = sweep(door, config={"training": {"steps": 7, "warmup_steps": 0}}, grid=GRID, name="all")
    assert (made["total"], made["counts"], made["reused"], len(made["runs"])) == (12, {"queued": 12}, 0, 12)
    runs = {run["id"]: run for run in runs_of(door, made["id"])}
    shown = [(runs[id]["cell"], runs[id]["depth"], runs[id]["seed"], runs[id]["total_steps"]) for id in made["runs"]]
    labels = ("rotrnn", "lru-learned", "lru-tied")
    assert shown == [(cell, depth, seed, 7) for cell, depth, seed in itertools.product(labels, (1, 2), (0, 1))]
    assert {run["sweep_id"] for run in runs.values()} == {made["id"]}
    assert door.http.get(f"/v1/sweeps/{made['id']}").json() == made


@given(
    st.lists(st.sampled_from(CELLS), min_size=1, max_size=3, unique_by=str),
    st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True),
    st.lists(st.floats(0, 0.99), min_size=1, max_size=3, unique=True),
)
@settings(max_examples=10, deadline=None)
def test_an_expansion_is_the_product_of_single_runs(cells: list[Any], depths: list[int], dropouts: list[float]) -> None:
    found = expand({}, {"model.cell": cells, "model.n_layers": depths, "model.dropout": dropouts})
    singles = [
        checked({"model": {"cell": cell, "n_layers": depth, "dropout": dropout}})
        for cell, depth, dropout in itertools.product(cells, depths, dropouts)
    ]
    assert found.runs == singles
    assert found.merged == 0


def test_an_option_of_a_cell_that_the_base_names_in_short_can_vary() -> None:
    found = expand({"model": {"cell": "lru"}}, {"model.cell.normaliser": ["learned", "tied"]})
    assert [run.cell for run in found.runs] == ["lru-learned", "lru-tied"]


def test_the_base_is_not_changed_and_loses_what_the_grid_sets() -> None:
    base = {"model": {"cell": "lru", "d_state": 30}, "training": {"seed": 4}}
    found = expand(base, {"model.cell": ["lru"], "training.seed": [1]})
    assert base == {"model": {"cell": "lru", "d_state": 30}, "training": {"seed": 4}}
    assert found.base == {"model": {"d_state": 30}, "training": {}}


def test_cells_that_mean_the_same_are_one_run(door: Any) -> None:
    grid = {"model.cell": ["lru", {"name": "lru"}, {"name": "lru", "normaliser": "learned"}], "training.seed": [0, 1]}
    plan = door.http.post("/v1/sweeps", json={"grid": grid, "dry_run": True}).json()
    assert (plan["total"], plan["merged"]) == (2, 4)
    assert sweep(door, grid=grid)["total"] == 2


def test_matched_cells_cost_what_the_first_one_does(door: Any) -> None:
    cells = [{"name": "rotrnn", "n_heads": 4}, "lru", "gru", "s4d"]
    body = {
        "config": {"model": {"d_model": 16, "d_state": 64}},
        "grid": {"training.seed": [0, 1], "model.cell": cells, "model.n_layers": [1, 2]},
        "match": "parameters",
    }
    plan = door.http.post("/v1/sweeps", json={**body, "dry_run": True}).json()
    assert (plan["total"], len(plan["sizes"])) == (16, 8)
    for size in plan["sizes"]:
        (first,) = [other for other in plan["sizes"] if (other["cell"], other["depth"]) == ("rotrnn", size["depth"])]
        assert first["d_state"] == 64
        assert abs(size["parameters"] / first["parameters"] - 1) < 0.05
    made = sweep(door, **body)
    further = door.http.post(f"/v1/sweeps/{made['id']}/extend", json={"seeds": [2]}).json()
    assert (made["match"], further["match"], further["total"]) == ("parameters", "parameters", 24)
    sizes = {(size["cell"], size["depth"]): size for size in plan["sizes"]}
    for run in runs_of(door, made["id"]):
        size = sizes[run["cell"], run["depth"]]
        assert run["config"]["model"]["d_state"] == size["d_state"]
        assert (run["state_size"], run["flops_per_token"]) == (size["state_size"], size["flops_per_token"])


def test_by_default_every_cell_keeps_the_state_that_is_given() -> None:
    found = expand({"model": {"d_state": 64}}, {"model.cell": ["lru", "gru"]})
    assert {run.config["model"]["d_state"] for run in found.runs} == {64}


def test_an_option_of_the_cell_is_matched_to_its_first_value_at_equal_length_of_the_task() -> None:
    grid = {"model.cell.n_heads": [2, 8], "task.name": ["listops", "listops-short"], "model.d_state": [32, 64]}
    found = expand({"model": {"cell": "rotrnn", "d_model": 16}}, grid, match="parameters")
    states = {(r.config["model"]["cell"]["n_heads"], r.config["model"]["d_state"]) for r in found.runs}
    # M alone depends on the heads: d_state^2 / n_heads numbers.
    assert {state for heads, state in states if heads == 2} == {32, 64}
    assert all(state > 32 for heads, state in states if heads == 8)


@pytest.mark.parametrize(
    ("grid", "remedy"),
    [
        ({"training.seed": [0]}, "put model.cell into it"),
        ({"model.cell": ["lru", "transformer"], "model.d_state": [2]}, "change d_model or the cell's options"),
    ],
)
def test_what_cannot_be_matched_is_refused(door: Any, grid: dict[str, Any], remedy: str) -> None:
    answer = door.http.post("/v1/sweeps", json={"grid": grid, "match": "parameters"})
    assert answer.status_code == 422
    assert remedy in answer.text


def test_a_grid_without_fields_is_one_run(door: Any) -> None:
    assert sweep(door, grid={})["total"] == 1


def test_a_dry_run_counts_and_shows_and_stores_nothing(fresh: Any) -> None:
    fresh.submit(model={"cell": CELLS[1], "n_layers": 2})
    before = fresh.stored()
    answer = fresh.http.post("/v1/sweeps", json={"grid": GRID, "dry_run": True}, headers={"Idempotency-Key": "k"})
    plan = answer.json()
    assert (answer.status_code, plan["total"], plan["duplicates"], plan["merged"]) == (200, 12, 1, 0)
    assert [c["training"]["seed"] for c in plan["configs_preview"]] == [0, 1, 0, 1, 0]
    assert fresh.stored() == before


def test_reuse_takes_runs_that_fill_the_cell_and_makes_the_others(fresh: Any) -> None:
    first = sweep(fresh, grid=GRID)
    done, dead = UUID(first["runs"][0]), UUID(first["runs"][1])
    fresh.train(done)
    fresh.http.post(f"/v1/runs/{dead}/cancel")
    again = sweep(fresh, grid=GRID | {"training.seed": [0, 1, 2]}, dedupe="reuse")
    assert (again["total"], again["reused"]) == (18, 11)
    assert again["counts"] == {"queued": 17, "succeeded": 1}
    assert str(dead) not in again["runs"]
    assert {run["id"] for run in runs_of(fresh, again["id"])} == set(again["runs"])
    assert fresh.http.get(f"/v1/sweeps/{again['id']}").json() == again


def test_runs_of_other_code_are_not_reused(fresh: Any) -> None:
    first = sweep(fresh, grid=GRID)
    with fresh.sessions() as session:
        session.execute(text("UPDATE runs SET code_version = 'older' WHERE id = :id"), {"id": first["runs"][0]})
        session.commit()
    again = sweep(fresh, grid=GRID, dedupe="reuse")
    assert (again["total"], again["reused"]) == (12, 11)
    assert first["runs"][0] not in again["runs"]


@given(
    st.dictionaries(
        st.sampled_from(["learning_rate", "weight_decay", "final_learning_rate", "recurrence_learning_rate"]),
        st.floats(1e-12, 1e-3) | st.just(1),
    ),
    st.integers(0, 2**53 - 1),
    st.sampled_from(CELLS),
)
@settings(max_examples=30, deadline=None)
def test_the_hash_is_that_of_the_whole_canonical_configuration(rates: Any, seed: int, cell: Any) -> None:
    config = {"model": {"cell": cell}, "training": {"final_learning_rate": 0, **rates, "seed": seed}}
    try:
        whole = RunConfig.from_dict(config).to_dict()
    except ConfigError:
        return
    run = checked(config)
    assert run.config == whole
    assert run.config_hash == hashlib.sha256(rfc8785.dumps(whole)).hexdigest()


def test_force_makes_every_run_anew(fresh: Any) -> None:
    first, again = sweep(fresh, grid=GRID), sweep(fresh, grid=GRID)
    assert set(first["runs"]).isdisjoint(again["runs"])
    assert again["reused"] == 0


def test_the_same_key_gives_the_same_sweep(fresh: Any) -> None:
    first, again = (
        fresh.http.post("/v1/sweeps", json={"grid": GRID}, headers={"Idempotency-Key": "k"}).json() for _ in range(2)
    )
    assert again == first
    assert fresh.stored()["runs"] == 12
    other = fresh.http.post("/v1/sweeps", json={"grid": {}}, headers={"Idempotency-Key": "k"})
    assert (other.status_code, other.json()["field"]) == (422, "Idempotency-Key")


def test_cancelling_a_sweep_cancels_what_it_made_and_nothing_else(fresh: Any) -> None:
    kept = sweep(fresh, grid={"training.seed": [0, 1]})
    made = sweep(fresh, grid={"training.seed": [0, 1, 2, 3]}, dedupe="reuse")
    fresh.train(UUID(made["runs"][2]))
    answer = fresh.http.post(f"/v1/sweeps/{made['id']}/cancel")
    assert answer.status_code == 202
    assert answer.json()["counts"] == {"queued": 2, "succeeded": 1, "cancelled": 1}
    assert fresh.http.get(f"/v1/sweeps/{kept['id']}").json()["counts"] == {"queued": 2}


def test_a_failure_half_way_leaves_nothing(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fresh.stored()
    monkeypatch.setattr("api.presenting.sweeps.counts", lambda *_: 1 / 0)
    assert fresh.http.post("/v1/sweeps", json={"grid": GRID}, headers={"Idempotency-Key": "k"}).status_code == 500
    assert fresh.stored() == before


def test_sweeps_are_listed_newest_first_without_their_runs(fresh: Any) -> None:
    made = [sweep(fresh, grid={"training.seed": [n]})["id"] for n in range(5)]
    first = fresh.http.get("/v1/sweeps?limit=3").json()
    rest = fresh.http.get("/v1/sweeps", params={"limit": 3, "cursor": first["next_cursor"]}).json()
    assert [item["id"] for item in first["items"] + rest["items"]] == made[::-1]
    assert rest["next_cursor"] is None
    assert "runs" not in first["items"][0]


@pytest.mark.parametrize("values", [[1000, 101], [10] * 30, [2] * 5000])
def test_a_grid_is_counted_before_it_is_expanded(values: list[int]) -> None:
    grid = {f"training.f{n}": list(range(count)) for n, count in enumerate(values)}
    with pytest.raises(ConfigError, match=str(MOST_RUNS)):
        expand({}, grid)


def test_status_counts_follow_the_runs(fresh: Any) -> None:
    made = sweep(fresh, grid={"training.seed": [0, 1, 2]})
    fresh.train(UUID(made["runs"][0]))
    fresh.train(UUID(made["runs"][1]), status=Status.DIVERGED)
    assert fresh.http.get(f"/v1/sweeps/{made['id']}").json()["counts"] == {"succeeded": 1, "diverged": 1, "queued": 1}
