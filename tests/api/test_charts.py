"""Does a chart hold every extreme within its bound of bytes, and is an unchanged answer sent once?"""

import json
import math
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest

from api.routers import charts as router
from api.routers import series as series_router
from store.status import Status


def chart(door: Any, **query: Any) -> Any:
    answer = door.http.get("/v1/charts/metrics", params=query)
    assert answer.status_code == 200, answer.text
    return json.loads(answer.text, parse_constant=lambda name: pytest.fail(f"bare {name} in JSON"))


def trained(door: Any, values: list[float], **parts: Any) -> UUID:
    run_id: UUID = door.submit(training={"steps": len(values), "warmup_steps": 0, **parts})
    door.train(run_id, metrics=[("train_loss", step, value) for step, value in enumerate(values, 1)])
    return run_id


def test_a_chart_keeps_each_runs_ends_and_extremes_and_counts_what_is_not_finite(door: Any) -> None:
    values = np.sin(np.arange(3000) / 50)
    values[1234], values[2345], values[2346] = 50, -50, math.nan
    ids = [str(trained(door, values.tolist())), str(trained(door, values[:500].tolist()))]
    found = chart(door, run_id=ids, key="train_loss", buckets=100)
    long, short = found["lines"]
    assert [line["run_id"] for line in found["lines"]] == ids
    assert len(long["steps"]) <= 100
    assert long["steps"][: len(short["steps"])] == short["steps"]
    assert (long["first"][0], long["last"][-1]) == (values[0], values[-1])
    assert (max(long["maximum"]), min(long["minimum"])) == (50, -50)
    assert (sum(long["points"]), sum(long["non_finite"]), sum(short["points"])) == (3000, 1, 500)


def test_a_series_of_few_points_comes_whole_and_an_unknown_key_empty(door: Any) -> None:
    run_id = trained(door, [1.0, math.inf, -0.0])
    whole, empty = chart(door, run_id=run_id, key=["train_loss", "test_loss"])["lines"]
    assert (whole["steps"], whole["values"], whole["first"]) == ([1, 2, 3], [1.0, "Infinity", -0.0], [])
    assert (empty["key"], empty["steps"]) == ("test_loss", [])


def test_the_answer_never_has_more_bytes_than_its_bound(door: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router, "MOST_BYTES", 4_000)
    values = np.random.default_rng(0).normal(size=2000)
    run_id = trained(door, values.tolist())
    answer = door.http.get("/v1/charts/metrics", params={"run_id": run_id, "key": "train_loss", "buckets": 1000})
    assert 1_000 < len(answer.content) <= 4_000
    (line,) = answer.json()["lines"]
    assert (min(line["minimum"]), max(line["maximum"])) == (values.min(), values.max())


def test_a_run_that_is_not_there_is_named(door: Any) -> None:
    nobody = uuid4()
    answer = door.http.get("/v1/charts/metrics", params={"run_id": nobody, "key": "train_loss"})
    assert (answer.status_code, answer.json()["value"]) == (404, str(nobody))


@pytest.mark.parametrize(
    "path", ["/v1/runs/{}/metrics?key=train_loss", "/v1/runs/{}/hidden-norms", "/v1/charts/metrics?key=a&run_id={}"]
)
def test_what_is_known_of_an_ended_run_is_not_sent_again(door: Any, path: str) -> None:
    run_id = door.submit()
    unended = door.http.get(path.format(run_id))
    assert (unended.status_code, "etag" in unended.headers) == (200, False)
    door.train(run_id, metrics=[("train_loss", 1, 1.0)], norms={0: [1.0]}, status=Status.SUCCEEDED)
    first = door.http.get(path.format(run_id))
    again = door.http.get(path.format(run_id), headers={"If-None-Match": f'"other", {first.headers["etag"]}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    other = door.http.get(path.format(run_id), headers={"If-None-Match": '"other"'})
    assert (other.status_code, other.content) == (200, first.content)


@pytest.mark.parametrize("path", ["metrics", "hidden-norms"])
def test_an_answer_of_tens_of_megabytes_is_refused_with_the_way_to_all_of_it(
    door: Any, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(series_router, "MOST_NUMBERS", 9)
    run_id = door.submit()
    door.train(run_id, metrics=[("train_loss", step, 1.0) for step in range(1, 11)], norms={0: [1.0], 1: [2.0]})
    answer = door.http.get(f"/v1/runs/{run_id}/{path}")
    assert answer.status_code == 422
    assert "10 " in answer.json()["detail"]
    assert "/v1/export" in answer.json()["remedy"]
    if path == "metrics":
        assert door.http.get(f"/v1/runs/{run_id}/{path}?max_points=5").status_code == 200
