"""Do the buckets of a chart say what the effective points say, the same buckets for every run?"""

import math
from typing import Any
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rotrnn_core import records
from store import charts, metrics, runs
from store.metric_blocks import block_of

VALUES = st.one_of(st.floats(-10, 10), st.sampled_from([math.nan, math.inf, -math.inf, -0.0]))
property_test = settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _expected(series: metrics.Series, width: int) -> list[tuple[Any, ...]]:
    """The buckets, computed from the effective points."""
    buckets: dict[int, list[float]] = {}
    for step, value in zip(series.steps, series.values, strict=True):
        buckets.setdefault(step // width * width, []).append(value)
    found = []
    for start, values in buckets.items():
        finite = [value for value in values if math.isfinite(value)]
        extremes = (min(finite), max(finite)) if finite else (None, None)
        found.append((start, values[0], values[-1], *extremes, len(values), len(values) - len(finite)))
    return found


def _shown(line: charts.Line) -> list[tuple[Any, ...]]:
    columns = (line.first, line.last, line.minimum, line.maximum, line.points, line.non_finite)
    return list(zip(line.steps, *columns, strict=True))


@given(st.data())
@property_test
def test_buckets_are_those_of_the_effective_points_also_after_a_resume(scene: Any, data: st.DataObject) -> None:
    total = 32
    first = scene.claimed(total_steps=total)
    scene.start(first)
    resumed = data.draw(st.integers(1, total - 2), label="resumes from")
    reached = data.draw(st.integers(resumed, total), label="reached before")
    steps = data.draw(st.permutations(range(1, reached + 1)), label="order of the first attempt")
    values = {step: data.draw(VALUES) for step in steps[:20]} | dict.fromkeys(steps[20:], 0.5)
    for place in range(0, len(steps), 11):
        scene.write(first, metrics=[("a", step, values[step]) for step in steps[place : place + 11]])
    scene.write(first, checkpoints=[records.Checkpoint(resumed, "x.pt", "0" * 64, 1)])
    runs.give_back(scene.session, first.run_id, first.attempt, first.token, "bye")
    scene.session.commit()
    second = scene.claim(first.run_id)
    scene.start(second, resumed)
    at_once = data.draw(st.integers(3, total), label="points at once")
    for place in range(resumed + 1, total + 1, at_once):
        some = range(place, min(place + at_once, total + 1))
        scene.write(second, metrics=[("a", step, values.get(step, -1.5)) for step in some])
    (series,) = metrics.read(scene.session, first.run_id, ["a"])
    buckets = data.draw(st.integers(1, 8), label="buckets")
    chart = charts.read(scene.session, [first.run_id], ["a"], buckets)
    (line,) = chart.lines
    assert chart.width % block_of(total) == 0
    assert len(line.steps) <= buckets
    assert list(map(repr, _shown(line))) == list(map(repr, _expected(series, chart.width)))


def test_all_runs_share_their_buckets_and_a_sparse_series_stays_whole(scene: Any) -> None:
    long, short = scene.claimed(total_steps=2000, seed=1), scene.claimed(total_steps=300, seed=2)
    for claim, last in ((long, 2000), (short, 300)):
        scene.write(claim, metrics=[("a", step, step / 7) for step in range(1, last + 1)])
    scene.write(short, metrics=[("b", 3, math.nan), ("b", 299, 1.0)])
    nobody = uuid4()
    chart = charts.read(scene.session, [long.run_id, short.run_id, nobody], ["a", "b"], 100)
    of = {(line.run_id, line.key): line for line in chart.lines}
    assert chart.width == 24
    starts = [of[claim.run_id, "a"].steps for claim in (long, short)]
    assert starts[0] == list(range(0, 2001, chart.width))
    assert starts[1] == starts[0][: len(starts[1])]
    sparse = of[short.run_id, "b"]
    assert (sparse.steps, list(map(repr, sparse.values or [])), sparse.first) == ([3, 299], ["nan", "1.0"], [])
    assert [of[place].steps for place in ((long.run_id, "b"), (nobody, "a"))] == [[], []]


@given(st.integers(1, 10_000_000), st.integers(1, 10_000_000))
def test_the_blocks_of_the_longer_run_are_whole_numbers_of_the_shorter_ones(one: int, other: int) -> None:
    shorter, longer = sorted((block_of(one), block_of(other)))
    assert longer % shorter == 0
    assert one / block_of(one) <= 2048


def test_points_sent_again_change_no_bucket(scene: Any) -> None:
    claim = scene.claimed(total_steps=500)
    batch = [("a", step, float(step)) for step in range(1, 400)]
    scene.write(claim, metrics=batch)
    once = charts.read(scene.session, [claim.run_id], ["a"], 10)
    scene.write(claim, metrics=batch[100:200])
    assert charts.read(scene.session, [claim.run_id], ["a"], 10) == once
    assert sum(once.lines[0].points) == 399
