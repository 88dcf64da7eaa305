"""Are the statistics over seeds those that one computes by hand, over all seeds and all points, and nothing else?"""

import json
import math
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from scipy import stats

from api.groups import Curve, differing_fields, over_seeds
from rotrnn_core import stability
from rotrnn_core.claim import claim
from store.status import Status


def compare(door: Any, **query: Any) -> Any:
    answer = door.http.get("/v1/compare/hidden-norms", params=query)
    assert answer.status_code == 200, answer.text
    return json.loads(answer.text, parse_constant=lambda name: pytest.fail(f"bare {name} in JSON"))


def trained(door: Any, cell: Any, seed: int, norms: dict[int, list[float]], **more: Any) -> UUID:
    """A run of the cell with the given relative norms, trained to its end."""
    depth = len(next(iter(norms.values())))
    status = more.pop("status", Status.SUCCEEDED)
    metrics = more.pop("metrics", ())
    run_id: UUID = door.submit(model={"cell": cell, "n_layers": depth}, training={"seed": seed, **more})
    door.train(run_id, norms=norms, status=status, metrics=metrics)
    return run_id


def random_norms(seed: int, steps: list[int], layers: int = 2) -> dict[int, list[float]]:
    values = np.random.default_rng(seed).lognormal(0, 0.3, (len(steps), layers))
    return dict(zip(steps, values.tolist(), strict=True))


def test_the_statistics_are_those_computed_directly(fresh: Any) -> None:
    steps = [0, 10, 20, 30]
    norms = {seed: random_norms(seed, steps) for seed in range(4)}
    ids = {seed: str(trained(fresh, "rotrnn", seed, norms[seed])) for seed in norms}
    answer = compare(fresh)
    assert (answer["statistic"], answer["warnings"]) == ("relative", [])
    assert [(g["task"], g["cell"], g["depth"], g["layer"]) for g in answer["groups"]] == [
        ("listops-short", "rotrnn", 2, layer) for layer in (0, 1)
    ]
    for layer, group in enumerate(answer["groups"]):
        values = np.array([[norms[seed][step][layer] for step in steps] for seed in norms])
        half = stats.t.ppf(0.975, 3) * values.std(axis=0, ddof=1) / 2
        assert (group["steps"], group["n"], group["non_finite"]) == (steps, [4] * 4, [0] * 4)
        assert (group["seeds"], group["run_ids"]) == ([0, 1, 2, 3], [ids[seed] for seed in range(4)])
        np.testing.assert_allclose(group["mean"], values.mean(axis=0), rtol=1e-14)
        np.testing.assert_allclose(group["low"], values.mean(axis=0) - half, rtol=1e-12)
        np.testing.assert_allclose(group["high"], values.mean(axis=0) + half, rtol=1e-12)
        assert (group["minimum"], group["maximum"]) == (values.min(axis=0).tolist(), values.max(axis=0).tolist())
        assert group["single"] == []


def test_a_shorter_seed_lowers_n_and_below_two_there_is_no_interval(fresh: Any) -> None:
    trained(fresh, "lru", 0, {0: [1.0], 10: [2.0], 20: [4.0]})
    trained(fresh, "lru", 1, {0: [1.0], 10: [3.0]})
    (group,) = compare(fresh)["groups"]
    assert (group["steps"], group["n"], group["mean"]) == ([0, 10, 20], [2, 2, 1], [1.0, 2.5, 4.0])
    assert (group["low"][2], group["high"][2], group["non_finite"]) == (None, None, [0, 0, 0])
    assert group["low"][1] < 2.5 < group["high"][1]


def test_a_seed_that_is_not_finite_is_counted_and_left_out(fresh: Any) -> None:
    trained(fresh, "lru", 0, {0: [1.0], 10: [2.0]})
    trained(fresh, "lru", 1, {0: [1.0], 10: [math.nan], 20: [math.inf]}, status=Status.DIVERGED)
    (group,) = compare(fresh, runs=True)["groups"]
    assert (group["n"], group["non_finite"], group["mean"]) == ([2, 1, 0], [0, 1, 1], [1.0, 2.0, "NaN"])
    assert (group["minimum"][2], group["maximum"][2], group["low"][2]) == ("NaN", "NaN", None)
    assert [(single["status"], single["values"]) for single in group["single"]] == [
        ("succeeded", [1.0, 2.0]),
        ("diverged", [1.0, "NaN", "Infinity"]),
    ]


def test_an_unrelated_group_changes_no_byte_of_another(fresh: Any) -> None:
    for seed in range(3):
        trained(fresh, "rotrnn", seed, random_norms(seed, [0, 7, 9]))
    before = compare(fresh, runs=True)["groups"]
    trained(fresh, "lru", 0, random_norms(5, [0, 3]))
    trained(fresh, "rotrnn", 0, random_norms(6, [0, 8], layers=1))
    after = [g for g in compare(fresh, runs=True)["groups"] if (g["cell"], g["depth"]) == ("rotrnn", 2)]
    assert json.dumps(after) == json.dumps(before)
    assert json.dumps(compare(fresh, runs=True, cell="rotrnn", depth=2)["groups"]) == json.dumps(before)


def test_runs_are_chosen_by_every_filter(fresh: Any) -> None:
    grid = {"model.cell": ["rotrnn", "lru"], "model.n_layers": [1, 2], "training.seed": [0]}
    sweep = fresh.http.post("/v1/sweeps", json={"grid": grid}).json()
    for run_id in sweep["runs"]:
        depth = fresh.http.get(f"/v1/runs/{run_id}").json()["depth"]
        fresh.train(UUID(run_id), norms={0: [1.0] * depth})
    trained(fresh, "lru", 9, {0: [1.0]})

    def chosen(**query: Any) -> list[tuple[str, int, int]]:
        return [(g["cell"], g["depth"], g["layer"]) for g in compare(fresh, **query)["groups"]]

    assert chosen() == [
        (cell, depth, layer) for cell in ("lru-learned", "rotrnn") for depth in (1, 2) for layer in range(depth)
    ]
    assert chosen(cell="rotrnn", depth=1) == [("rotrnn", 1, 0)]
    assert chosen(cell=["rotrnn", "lru-learned"], depth=[2], layer=1) == [("lru-learned", 2, 1), ("rotrnn", 2, 1)]
    assert chosen(task="listops") == []
    assert chosen(statistic="per_head") == []
    in_sweep = compare(fresh, sweep_id=sweep["id"], cell="lru-learned", depth=1)["groups"]
    assert [g["seeds"] for g in in_sweep] == [[0]]


def test_failed_and_cancelled_runs_are_left_out_and_of_equal_runs_the_newest_counts(fresh: Any) -> None:
    trained(fresh, "lru", 0, {0: [1.0]})
    newest = trained(fresh, "lru", 0, {0: [3.0]})
    stopped = trained(fresh, "lru", 1, {0: [9.0]}, status=None)
    (group,) = compare(fresh)["groups"]
    assert group["run_ids"] == [str(newest), str(stopped)]
    with fresh.sessions() as session:
        from store import leases
        from store.tables import RunRow

        row = session.get_one(RunRow, stopped)
        leases.finish(
            session, stopped, row.attempt, row.lease_token, status=Status.FAILED, failure_class="code_error", reason="x"
        )
        session.commit()
    (group,) = compare(fresh)["groups"]
    assert (group["run_ids"], group["mean"]) == ([str(newest)], [3.0])


def test_runs_of_one_group_that_differ_beside_the_seed_are_warned_of(fresh: Any) -> None:
    trained(fresh, "lru", 0, {0: [1.0]})
    trained(fresh, "lru", 1, {0: [1.0]}, learning_rate=0.1)
    (warning,) = compare(fresh)["warnings"]
    assert "lru-learned, depth 1, listops-short" in warning
    assert "training.learning_rate (0.003, 0.1)" in warning


def test_several_curves_of_one_seed_count_once() -> None:
    steps = np.array([0, 1])
    curves = [Curve(0, steps, np.array([[v], [v]])) for v in (1.0, 3.0)] + [
        Curve(1, steps, np.array([[4.0], [np.nan]]))
    ]
    found = over_seeds(curves)
    assert found.n.tolist() == [[2], [1]]
    assert found.mean.tolist() == [[3.0], [2.0]]
    assert found.non_finite.tolist() == [[0], [1]]


def test_differing_fields_name_everything_but_the_seed() -> None:
    configs = [{"a": {"b": 1}, "training": {"seed": n}, "c": n // 2} for n in range(3)]
    assert differing_fields(configs) == {"c": [0, 1]}


def test_the_stability_numbers_are_those_of_the_traces(fresh: Any) -> None:
    traces = []
    for cell, label, growth in (("rotrnn", "rotrnn", 0.02), ("lru", "lru-learned", 1.0)):
        for depth in (1, 2):
            for seed in range(3):
                end = 1 + growth * (1 + seed / 10)
                norms = {0: [1.0] * depth, 10: [end] * depth}
                trained(fresh, cell, seed, norms, metrics=[("test_accuracy", 10, 0.1 * seed)])
                log_norms = np.log(np.array(list(norms.values())))
                traces.append(
                    stability.Trace(
                        "listops-short", label, depth, seed, np.array([0, 10]), log_norms, accuracy=0.1 * seed
                    )
                )
    answer = fresh.http.get("/v1/compare/stability").json()
    report = stability.report(traces)
    numbers = ("estimate", "low", "high", "n", "bootstrap_low", "bootstrap_high")
    rows = [tuple(r[name] for name in ("task", "cell", "depth", "measure", *numbers)) for r in answer["rows"]]
    assert rows == [(*list(vars(row).values())[:4], *vars(row.value).values()) for row in report.rows]
    for name in ("paired", "paired_settling"):
        paired = [
            tuple(p[key] for key in ("cell", "depth", "measure", "difference", *numbers[1:])) for p in answer[name]
        ]
        expected = [(p.cell, p.depth, p.measure, *vars(p.difference).values()) for p in getattr(report, name)]
        assert paired == expected
    over_depth = [tuple(o[key] for key in ("cell", "depths", *numbers)) for o in answer["over_depth"]]
    assert over_depth == [(o.cell, list(o.depths), *vars(o.value).values()) for o in report.over_depth]
    assert len(over_depth) == 2
    assert {o["measure"] for o in answer["over_depth"]} == {answer["depth_measure"]["name"]}
    assert [(c["cell"], c["depth"]) for c in answer["costs"]] == [(a["cell"], a["depth"]) for a in answer["accuracy"]]
    said = claim(traces)
    assert answer["claim"]["sentence"] == said.sentence
    for half in ("rotrnn_constant", "lru_not_constant"):
        assert answer["claim"][half] == vars(getattr(said, half))
    assert (answer["claim"]["rotrnn_constant"]["seen"], answer["claim"]["lru_not_constant"]["seen"]) == (True, True)
    assert [(a["cell"], a["depth"], a["n"]) for a in answer["accuracy"]] == [
        ("lru-learned", 1, 3), ("lru-learned", 2, 3), ("rotrnn", 1, 3), ("rotrnn", 2, 3),
    ]  # fmt: skip
    assert answer["accuracy"][0]["estimate"] == pytest.approx(0.1)
    assert (answer["tasks"], answer["warnings"]) == (["listops-short"], [])
    assert {m["name"] for m in answer["measures"]} == {r["measure"] for r in answer["rows"]}


def test_what_stability_leaves_out_is_named(fresh: Any) -> None:
    lost = trained(fresh, "lru", 0, {0: [1.0], 10: [math.nan]}, status=Status.DIVERGED)
    trained(fresh, "lru", 1, {0: [1.0], 10: [2.0]}, status=None)
    trained(fresh, "lru", 2, {0: [1.0], 10: [2.0]})
    answer = fresh.http.get("/v1/compare/stability").json()
    assert {row["n"] for row in answer["rows"]} == {1}
    assert any(str(lost) in warning and "diverged" in warning for warning in answer["warnings"])
    assert any("1 run has not ended" in warning for warning in answer["warnings"])


def test_a_stuck_run_is_named_and_counted(fresh: Any) -> None:
    guess = math.log(10)
    losses = {0: guess, 1: 0.5 * guess}
    ids = {
        seed: trained(fresh, "lru", seed, {0: [1.0], 10: [2.0]}, metrics=[("validation_loss", 400, loss)])
        for seed, loss in losses.items()
    }
    assert [fresh.http.get(f"/v1/runs/{ids[seed]}").json()["stuck"] for seed in losses] == [True, False]
    answer = fresh.http.get("/v1/compare/stability").json()
    (said,) = [warning for warning in answer["warnings"] if "Stuck" in warning]
    assert f"lru-learned, depth 1, listops-short: seed 0 (run {ids[0]})" in said
    assert {row["n"] for row in answer["rows"]} == {2}


def test_stability_of_nothing_is_an_answer(fresh: Any) -> None:
    answer = fresh.http.get("/v1/compare/stability").json()
    assert (answer["rows"], answer["paired"], answer["accuracy"]) == ([], [], [])
    assert answer["claim"]["rotrnn_constant"]["seen"] is None


@pytest.mark.parametrize("path", ["/v1/compare/hidden-norms?runs=true", "/v1/compare/stability"])
def test_a_comparison_needs_a_fixed_number_of_queries(fresh: Any, path: str) -> None:
    trained(fresh, "lru", 0, {0: [1.0]})
    counts = []
    for seed in (1, 2, 3):
        with fresh.statements() as seen:
            assert fresh.http.get(path).status_code == 200
        counts.append(len(seen))
        trained(fresh, "rotrnn", seed, {0: [1.0, 1.0]})
    assert len(set(counts)) == 1
    assert counts[0] <= 6


def test_on_the_log_scale_the_interval_is_that_of_the_logarithms(fresh: Any) -> None:
    values = np.array([0.5, 1.0, 8.0])
    for seed, value in enumerate(values):
        trained(fresh, "lru", seed, {0: [value]})
    (group,) = compare(fresh, scale="log")["groups"]
    logs = np.log(values)
    half = stats.t.ppf(0.975, 2) * logs.std(ddof=1) / math.sqrt(3)
    assert group["mean"][0] == pytest.approx(math.exp(logs.mean()), rel=1e-12)
    assert (group["low"][0], group["high"][0]) == pytest.approx(
        (math.exp(logs.mean() - half), math.exp(logs.mean() + half)), rel=1e-9
    )
    assert (group["minimum"][0], group["maximum"][0]) == pytest.approx((0.5, 8.0), rel=1e-12)


def test_profiles_are_compared_place_by_place_at_the_step_that_is_asked_for(fresh: Any) -> None:
    for seed, factor in enumerate((1.0, 4.0)):
        trained(fresh, "lru", seed, {0: [factor], 10: [4 * factor]})
    trained(fresh, "lru", 2, {0: [1.0], 10: [math.nan]}, status=Status.DIVERGED)
    for query, step, mean, n in (({}, 10, 8.0, 2), ({"step": 9}, 0, 4 ** (1 / 3), 3)):
        answer = fresh.http.get("/v1/compare/profiles", params={"statistic": "relative", **query}).json()
        (group,) = answer["groups"]
        assert (group["steps"], group["positions"], group["n"]) == ([step] * 3, [0, 1], [n, n])
        np.testing.assert_allclose(group["mean"], [mean, mean], rtol=1e-6)
        assert group["low"][0] < mean < group["high"][0]
