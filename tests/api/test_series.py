"""Does what a trainer recorded come out as it went in, to the last bit and with NaN and infinities?"""

import json
import math
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

NAMED = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
ODD = [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308, 0.1, 1e22, math.nextafter(1, 2)]


def number(wire: Any) -> float:
    """A value off the wire."""
    return NAMED[wire] if isinstance(wire, str) else float(wire)


def bits(values: Any) -> list[bytes]:
    """The values' bits, every NaN alike."""
    return [struct.pack("<d", math.nan if math.isnan(value) else value) for value in values]


def get(door: Any, path: str) -> Any:
    answer = door.http.get(path)
    assert answer.status_code == 200, answer.text
    return json.loads(answer.text, parse_constant=lambda name: pytest.fail(f"bare {name} in JSON"))


def test_every_kind_of_float_survives_the_way_to_the_wire(door: Any) -> None:
    run_id = door.submit()
    door.train(run_id, metrics=[("train_loss", step, value) for step, value in enumerate(ODD, 1)])
    (series,) = get(door, f"/v1/runs/{run_id}/metrics?key=train_loss")["series"]
    assert series["steps"] == list(range(1, len(ODD) + 1))
    assert series["attempts"] == [1] * len(ODD)
    assert bits(map(number, series["values"])) == bits(ODD)


@given(values=st.lists(st.floats(), min_size=1, max_size=20))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_float_survives_the_way_to_the_wire(door: Any, values: list[float]) -> None:
    run_id = door.submit()
    door.train(run_id, metrics=[("train_loss", step, value) for step, value in enumerate(values, 1)])
    (series,) = get(door, f"/v1/runs/{run_id}/metrics")["series"]
    assert bits(map(number, series["values"])) == bits(values)


def test_metrics_are_chosen_by_key_and_step(door: Any) -> None:
    run_id = door.submit()
    door.train(run_id, metrics=[(key, step, step / 3) for key in ("train_loss", "learning_rate") for step in (1, 2, 3)])
    path = f"/v1/runs/{run_id}/metrics"
    assert [series["key"] for series in get(door, path)["series"]] == ["learning_rate", "train_loss"]
    (series,) = get(door, f"{path}?key=train_loss&after_step=1")["series"]
    assert (series["steps"], series["values"]) == ([2, 3], [2 / 3, 1.0])
    (empty,) = get(door, f"{path}?key=test_loss")["series"]
    assert (empty["key"], empty["steps"], empty["values"]) == ("test_loss", [], [])


def test_a_thinned_series_keeps_its_ends_its_extremes_and_its_nan(door: Any) -> None:
    values = np.sin(np.arange(5000) / 50)
    values[1234], values[2345], values[3456] = 50, -50, math.nan
    run_id = door.submit(training={"steps": 5000})
    door.train(run_id, metrics=[("train_loss", step, value) for step, value in enumerate(values.tolist(), 1)])
    (series,) = get(door, f"/v1/runs/{run_id}/metrics?max_points=200")["series"]
    assert len(series["steps"]) <= 200
    assert series["steps"] == sorted(set(series["steps"]))
    assert {1, 1235, 2346, 3457, 5000} <= set(series["steps"])
    assert bits(map(number, series["values"])) == bits(values[np.array(series["steps"]) - 1])


def test_a_short_series_is_never_thinned(door: Any) -> None:
    run_id = door.submit()
    door.train(run_id, metrics=[("validation_loss", step, 1.0) for step in (100, 200, 300)])
    (series,) = get(door, f"/v1/runs/{run_id}/metrics?max_points=5")["series"]
    assert series["steps"] == [100, 200, 300]


def test_hidden_norms_come_out_layer_by_layer(door: Any) -> None:
    run_id = door.submit()
    norms = {0: [1.0, 1.0], 50: [math.nan, 0.1], 100: [math.inf, 1e-320]}
    door.train(run_id, norms=norms, statistics=("per_head", "whole", "relative"))
    path = f"/v1/runs/{run_id}/hidden-norms"
    answer = get(door, path)
    assert (answer["run_id"], answer["layers"], answer["profile_positions"]) == (str(run_id), 2, [0, 1])
    assert [series["statistic"] for series in answer["series"]] == ["per_head", "relative", "whole"]
    (series,) = get(door, f"{path}?statistic=relative")["series"]
    assert (series["steps"], series["attempts"], series["profile"]) == ([0, 50, 100], [1, 1, 1], None)
    for name, shift in (("mean", 0), ("minimum", -1), ("maximum", 1)):
        for step, wire in zip(series["steps"], series[name], strict=True):
            assert bits(map(number, wire)) == bits(value + shift for value in norms[step])
    assert series["deviation"] == [[0.5, 0.5]] * 3
    assert series["non_finite"] == [[0, 0]] * 3
    assert get(door, f"{path}?statistic=relative&after_step=50")["series"][0]["steps"] == [100]


def test_the_profile_comes_when_asked_for(door: Any) -> None:
    run_id = door.submit()
    door.train(run_id, norms={0: [0.5, math.nan]})
    (series,) = get(door, f"/v1/runs/{run_id}/hidden-norms?include_profile=true&statistic=relative")["series"]
    assert series["profile"] == [[[0.5, 0.5], ["NaN", "NaN"]]]


def test_a_log_is_followed_by_its_cursor(door: Any) -> None:
    run_id = door.submit()
    path = f"/v1/runs/{run_id}/logs"
    assert get(door, path) == {"items": [], "next_cursor": None}
    door.train(run_id, logs=[f"line {n}" for n in range(5)])
    first = get(door, f"{path}?limit=3")
    rest = get(door, f"{path}?after={first['next_cursor']}")
    assert [line["message"] for line in first["items"] + rest["items"]] == [f"line {n}" for n in range(5)]
    assert get(door, f"{path}?after={rest['next_cursor']}") == {"items": [], "next_cursor": rest["next_cursor"]}


def test_attempts_say_who_tried_and_how_it_ended(door: Any) -> None:
    run_id = door.submit()
    assert get(door, f"/v1/runs/{run_id}/attempts") == {"items": []}
    door.train(run_id)
    (attempt,) = get(door, f"/v1/runs/{run_id}/attempts")["items"]
    expected = {
        "number": 1,
        "worker_id": "w",
        "host": "h",
        "device": "cpu",
        "outcome": "succeeded",
        "environment": {"torch": "none"},
    }
    assert {name: attempt[name] for name in expected} == expected
    assert attempt["ended_at"] >= attempt["started_at"]


def test_checkpoints_are_listed(door: Any) -> None:
    run_id = door.submit()
    assert get(door, f"/v1/runs/{run_id}/checkpoints") == {"items": []}
