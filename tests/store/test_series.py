"""Has the effective series each step once, and does thinning keep what the eye must see?"""

import math
from typing import Any
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from rotrnn_core import records
from store import attempts, hidden_norms, metrics, runs

property_test = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _give_back(scene: Any, claim: runs.Claim) -> None:
    runs.give_back(scene.session, claim.run_id, claim.attempt, claim.token, "bye")
    scene.session.commit()


@given(st.data())
@property_test
def test_the_effective_series_is_the_life_of_the_network_that_was_trained(scene: Any, data: st.DataObject) -> None:
    """Each attempt goes on from a checkpoint with the steps that led to it, so the last attempt's own past counts."""
    run_id = scene.add(total_steps=40)
    checkpoints: dict[int, dict[int, int]] = {}
    life: dict[int, int] = {}
    for _ in range(data.draw(st.integers(1, 4), label="attempts")):
        claim = scene.claim(run_id)
        start = data.draw(st.sampled_from([0, *sorted(checkpoints)]), label="resumes from")
        scene.start(claim, start)
        life = dict(checkpoints[start]) if start else {0: claim.attempt}
        reached = data.draw(st.integers(start, 40), label="reaches")
        life |= dict.fromkeys(range(start + 1, reached + 1), claim.attempt)
        own = [step for step, attempt in life.items() if attempt == claim.attempt]
        kept = data.draw(st.lists(st.sampled_from(own), max_size=2), label="checkpoints") if own else []
        scene.write(
            claim,
            metrics=[("train_loss", step, float(claim.attempt)) for step in own],
            hidden_norms=[scene.norms(step=step) for step in own],
            checkpoints=[records.Checkpoint(step, "x.pt", "0" * 64, 1) for step in set(kept) - {0}],
        )
        for step in set(kept) - {0}:
            checkpoints[step] = {past: attempt for past, attempt in life.items() if past <= step}
        _give_back(scene, claim)
    steps = sorted(life)
    (series,) = metrics.read(scene.session, run_id, ["train_loss"])
    assert (series.steps, series.attempts) == (steps, [life[step] for step in steps])
    assert series.values == [float(life[step]) for step in steps]
    (trace,) = hidden_norms.read(scene.session, run_id, ["relative"])
    assert (trace.steps, trace.attempts) == (series.steps, series.attempts)
    assert hidden_norms.traces(scene.session, [run_id], "relative")[run_id].steps.tolist() == series.steps
    assert metrics.last(scene.session, [run_id], "train_loss") == {run_id: float(life[steps[-1]])}


def test_the_superseded_steps_stay_readable(scene: Any) -> None:
    first = scene.claimed()
    scene.start(first)
    scene.write(
        first,
        metrics=[("train_loss", step, 1.0) for step in range(1, 9)],
        checkpoints=[records.Checkpoint(5, "5.pt", "0" * 64, 1)],
    )
    _give_back(scene, first)
    second = scene.claim(first.run_id)
    (before,) = metrics.read(scene.session, first.run_id)
    assert before.steps == list(range(1, 9)), "a claim alone supersedes nothing"
    scene.start(second, 5)
    scene.write(second, metrics=[("train_loss", step, 2.0) for step in range(6, 12)])
    (series,) = metrics.read(scene.session, first.run_id)
    assert series.steps == list(range(1, 12))
    assert series.values == [1.0] * 5 + [2.0] * 6
    (everything,) = metrics.recorded(scene.session, first.run_id)
    assert everything.steps == [*range(1, 6), 6, 6, 7, 7, 8, 8, 9, 10, 11]
    assert [row.resumed_from_attempt for row in attempts.read(scene.session, first.run_id)] == [None, 1]


def test_a_checkpoint_that_was_never_recorded_still_joins_the_attempts(scene: Any) -> None:
    first = scene.claimed()
    scene.start(first)
    scene.write(first, metrics=[("train_loss", step, 1.0) for step in range(1, 7)])
    _give_back(scene, first)
    second = scene.claim(first.run_id)
    scene.start(second, 4)
    scene.write(second, metrics=[("train_loss", step, 2.0) for step in range(5, 7)])
    (series,) = metrics.read(scene.session, first.run_id)
    assert (series.steps, series.values) == ([1, 2, 3, 4, 5, 6], [1.0] * 4 + [2.0] * 2)


def test_series_come_in_the_order_asked_for_and_empty_ones_too(scene: Any) -> None:
    claim = scene.claimed()
    scene.write(claim, metrics=[(key, 1, 0.0) for key in ("b", "a", "c")])
    asked = metrics.read(scene.session, claim.run_id, ["c", "nothing", "a"])
    assert [(series.key, series.steps) for series in asked] == [("c", [1]), ("nothing", []), ("a", [1])]
    assert [series.key for series in metrics.read(scene.session, claim.run_id)] == ["a", "b", "c"]
    assert [trace.steps for trace in hidden_norms.read(scene.session, claim.run_id, ["whole"])] == [[]]
    assert metrics.read(scene.session, uuid4()) == []


def test_a_reader_can_follow_by_step(scene: Any) -> None:
    claim = scene.claimed()
    scene.write(
        claim,
        metrics=[("a", step, 0.0) for step in range(1, 10)],
        hidden_norms=[scene.norms(step=step) for step in range(0, 10, 3)],
    )
    assert metrics.read(scene.session, claim.run_id, after_step=7)[0].steps == [8, 9]
    (trace,) = hidden_norms.read(scene.session, claim.run_id, after_step=3)
    assert (trace.steps, trace.profile) == ([6, 9], None)


@given(
    st.lists(
        st.one_of(st.floats(-10, 10), st.sampled_from([math.nan, math.inf, -math.inf])), min_size=30, max_size=120
    ),
    st.integers(1, 60),
)
@property_test
def test_a_thinned_series_keeps_ends_extremes_and_the_first_that_is_not_finite(
    scene: Any, values: list[float], max_points: int
) -> None:
    claim = scene.claimed(total_steps=len(values))
    scene.write(claim, metrics=[("a", step, value) for step, value in enumerate(values, 1)])
    (whole,) = metrics.read(scene.session, claim.run_id)
    (thin,) = metrics.read(scene.session, claim.run_id, max_points=max_points)
    points = list(zip(thin.steps, map(repr, thin.values), strict=True))
    assert set(points) <= set(zip(whole.steps, map(repr, whole.values), strict=True))
    assert thin.steps == sorted(set(thin.steps))
    if len(values) <= max_points:
        assert thin.steps == whole.steps
        return
    assert len(thin.steps) <= max(5, max_points)
    assert (thin.steps[0], thin.steps[-1]) == (1, len(values))
    finite = [value for value in values if math.isfinite(value)]
    if finite:
        kept = [value for value in thin.values if math.isfinite(value)]
        assert (min(kept), max(kept)) == (min(finite), max(finite))
    if len(finite) < len(values):
        first = next(step for step, value in enumerate(values, 1) if not math.isfinite(value))
        assert first in thin.steps


def test_a_short_series_stays_whole_beside_a_long_one(scene: Any) -> None:
    claim = scene.claimed(total_steps=1000)
    scene.write(
        claim,
        metrics=[("long", step, float(step)) for step in range(1, 1001)] + [("short", s, 0.0) for s in (1, 2, 3, 999)],
    )
    long, short = metrics.read(scene.session, claim.run_id, max_points=50)
    assert short.steps == [1, 2, 3, 999]
    assert len(long.steps) <= 50


def test_many_runs_are_read_by_one_query(scene: Any, sessions: Any) -> None:
    claims = [scene.claimed(seed=seed) for seed in range(6)]
    for number, claim in enumerate(claims[:-1]):
        scene.write(
            claim,
            metrics=[(key, step, number + step) for key in ("a", "b") for step in (1, 2)],
            hidden_norms=[scene.norms(step=0, mean=(float(number), 1.0))],
        )
    run_ids = [claim.run_id for claim in claims]
    statements: list[str] = []
    engine = scene.session.get_bind()
    event.listen(engine, "before_cursor_execute", lambda *arguments: statements.append(arguments[2]))
    latest = metrics.latest(scene.session, run_ids, ["a", "missing"])
    traces = hidden_norms.traces(scene.session, run_ids, "relative")
    assert len(statements) == 2
    assert latest == {run_id: {"a": number + 2.0} for number, run_id in enumerate(run_ids[:-1])} | {run_ids[-1]: {}}
    assert [trace.mean.tolist() for trace in traces.values()] == [[[float(number), 1.0]] for number in range(5)] + [[]]


def test_the_time_left_follows_the_pace_of_the_present_attempt(scene: Any) -> None:
    claim = scene.claimed(total_steps=100)
    idle = scene.add()
    assert attempts.seconds_left(scene.session, [claim.run_id, idle]) == {}
    scene.start(claim)
    scene.write(claim, step=50)
    left = attempts.seconds_left(scene.session, [claim.run_id, idle])
    assert list(left) == [claim.run_id]
    assert 0 < left[claim.run_id] < 60


def test_a_flat_series_is_thinned_too(scene: Any) -> None:
    claim = scene.claimed(total_steps=500)
    scene.write(claim, metrics=[("flat", step, 1.0) for step in range(1, 501)])
    (flat,) = metrics.read(scene.session, claim.run_id, max_points=20)
    assert len(flat.steps) <= 20
