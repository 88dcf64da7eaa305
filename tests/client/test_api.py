"""Does the client do with the real API what it says?"""

import math
from typing import Any

import pytest

from client import RotBench, RotBenchError
from client.results import ACTIVE
from store.status import TERMINAL, Status

SMALL = {"model": {"d_model": 8, "d_state": 8, "cell": {"name": "rotrnn", "n_heads": 2}}}


def test_client_and_store_agree_on_which_statuses_are_an_end() -> None:
    assert {status.value for status in Status} == ACTIVE | {status.value for status in TERMINAL}
    assert not ACTIVE & TERMINAL


def test_a_run_that_is_submitted_can_be_found_steered_and_deleted(fresh: Any) -> None:
    with fresh.client() as client:
        run = client.submit(SMALL, name="mine", priority="low")
        assert (run.status, run.name, run.cell, run.priority, run.latest) == ("queued", "mine", "rotrnn", "low", {})
        assert client.run(run.id) == run
        assert client.pause(run.id).status == "paused"
        assert client.resume(run.id).status == "queued"
        assert client.cancel(run.id).status == "cancelled"
        client.delete(run.id)
        with pytest.raises(RotBenchError) as told:
            client.run(run.id)
        assert told.value.status == 404


def test_the_same_key_gives_the_same_run(fresh: Any) -> None:
    with fresh.client() as client:
        first = client.submit(SMALL, idempotency_key="k")
        assert client.submit(SMALL, idempotency_key="k").id == first.id
        assert [run.id for run in client.runs()] == [first.id]


def test_the_same_key_gives_the_same_sweep(fresh: Any) -> None:
    with fresh.client() as client:
        first = client.sweep(SMALL, {"training.seed": [0, 1]}, idempotency_key="k")
        assert client.sweep(SMALL, {"training.seed": [0, 1]}, idempotency_key="k").id == first.id
        assert len(list(client.sweeps())) == 1


def test_what_an_error_names_is_field_value_and_remedy(fresh: Any) -> None:
    with fresh.client() as client, pytest.raises(RotBenchError) as told:
        client.submit({"model": {"d_model": -3}})
    error = told.value
    assert (error.status, error.field, error.value) == (422, "model.d_model", -3)
    assert error.remedy
    assert error.remedy.rstrip(".") in str(error)


def test_a_learning_rate_that_is_not_a_number_is_refused_by_name(fresh: Any) -> None:
    with fresh.client() as client, pytest.raises(RotBenchError) as told:
        client.submit({"training": {"learning_rate": math.nan}})
    assert (told.value.field, told.value.value) == ("training.learning_rate", "NaN")


def test_a_wrong_token_is_an_error_that_says_so(fresh: Any) -> None:
    with RotBench(fresh.url, "wrong") as client, pytest.raises(RotBenchError) as told:
        client.tasks()
    assert told.value.status == 401
    assert "token" in str(told.value)


def test_a_plan_counts_and_stores_nothing(fresh: Any) -> None:
    with fresh.client() as client:
        client.submit({**SMALL, "training": {"seed": 1}})
        plan = client.plan_sweep(SMALL, {"training.seed": [0, 1, 2], "model.n_layers": [2, 3]})
        assert (plan.total, plan.duplicates, len(plan.configs_preview)) == (6, 1, 5)
        assert list(client.sweeps()) == []


def test_a_sweep_is_followed_to_its_end(fresh: Any) -> None:
    with fresh.client() as client:
        sweep = client.sweep(SMALL, {"training.seed": [0, 1]}, name="two")
        assert (sweep.total, sweep.done, sweep.active) == (2, 0, True)
        with pytest.raises(TimeoutError, match="has 0 runs done"):
            client.wait(sweep, timeout_s=0)
        with pytest.raises(TimeoutError, match="is queued at step 0"):
            client.wait(sweep.runs[0], timeout_s=0)
        fresh.train(sweep.runs[0])
        ended = client.wait(sweep.runs[0])
        assert client.wait(ended) == ended
        assert ended.status == "succeeded"
        assert client.cancel_sweep(sweep.id).counts == {"succeeded": 1, "cancelled": 1}
        assert client.wait(sweep).counts == {"succeeded": 1, "cancelled": 1}


def test_not_a_number_and_infinity_come_through_as_floats(seeded: Any) -> None:
    with seeded.service.client() as client:
        loss = client.metrics(seeded.diverged, ["train_loss"])["train_loss"]
        assert loss.steps == (1, 10, 11)
        assert loss.values[0] == 2.3
        assert math.isnan(loss.values[1])
        assert loss.values[2] == math.inf
        norms = client.hidden_norms(seeded.diverged, "relative").series[0]
        assert norms.mean[1][0] == math.inf
        assert math.isnan(norms.mean[1][1])
        assert norms.non_finite[1] == (3, 3)
        run = client.run(seeded.diverged)
        assert run.latest["train_loss"] == math.inf
        assert run.divergence is not None
        assert (run.divergence.step, run.divergence.layer, run.divergence.kind) == (15, 0, "activation")


def test_hidden_norms_are_given_layer_by_layer_with_their_profile_on_request(seeded: Any) -> None:
    with seeded.service.client() as client:
        run = next(client.runs(sweep_id=seeded.sweep_id, depth=2, cell="lru-learned", seed=1))
        trace = client.hidden_norms(run.id, include_profile=True)
        assert (trace.layers, trace.profile_positions) == (2, (0, 1))
        assert {series.statistic for series in trace.series} == {"per_head", "whole", "relative"}
        series = trace.series[0]
        assert series.steps == (0, 10, 20)
        assert series.mean[0] == (1.0, 1.0)
        assert series.profile is not None
        assert len(series.profile[2][1]) == 2
        assert client.hidden_norms(run.id).series[0].profile is None


def test_the_log_is_followed_by_its_cursor(seeded: Any) -> None:
    with seeded.service.client() as client:
        first = client.logs(seeded.failed, limit=1)
        assert [line.message for line in first.items] == ["one"]
        assert [line.message for line in client.logs(seeded.failed, after=first.next_cursor).items] == ["two"]


def test_a_failed_run_tells_class_and_reason_and_its_attempt(seeded: Any) -> None:
    with seeded.service.client() as client:
        run = client.run(seeded.failed)
        assert (run.failure_class, run.reason) == ("code_error", "ValueError: [red] is no number")
        attempt = client.attempts(seeded.failed)[0]
        assert (attempt.number, attempt.host, attempt.outcome) == (1, "box", "failed")
        assert client.checkpoints(seeded.failed)[0].size_bytes == 2048


def test_groups_hold_the_seeds_mean_and_on_request_each_seed(seeded: Any) -> None:
    with seeded.service.client() as client:
        chosen = {"sweep_id": seeded.sweep_id, "cell": "rotrnn", "depth": 1, "layer": 0}
        group = client.compare_hidden_norms(**chosen, runs=True).groups[0]
        assert (group.seeds, group.n, group.steps) == ((0, 1, 2), (3, 3, 3), (0, 10, 20))
        assert group.mean[2] == pytest.approx(sum(math.exp(0.02 + 0.01 * seed) for seed in (0, 1, 2)) / 3)
        assert [run.values[2] for run in group.single] == [math.exp(0.02 + 0.01 * seed) for seed in (0, 1, 2)]
        assert client.compare_hidden_norms(**chosen).groups[0].single == ()


def test_stability_numbers_come_with_the_verdict(seeded: Any) -> None:
    with seeded.service.client() as client:
        stability = client.stability(sweep_id=seeded.sweep_id)
        over_training = next(
            row
            for row in stability.rows
            if (row.cell, row.depth, row.measure) == ("lru-learned", 1, "spread_over_training")
        )
        assert over_training.estimate == pytest.approx(0.81)
        assert over_training.n == 3
        assert stability.claim.rotrnn_constant.seen is True
        assert stability.claim.lru_not_constant.seen is True


def test_catalogue_and_workers_are_typed(seeded: Any) -> None:
    with seeded.service.client() as client:
        assert {task.name for task in client.tasks()} >= {"listops", "listops-short"}
        assert {label for model in client.models() for label in model.labels} >= {"rotrnn", "lru-learned", "lru-tied"}
        assert all(recipe.config["task"]["name"] for recipe in client.recipes())
        assert [(worker.host, worker.state) for worker in client.workers()] == [("box", "idle")]
        assert client.ready()
