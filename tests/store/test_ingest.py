"""Does every record get in once, bit for bit, whatever its value and however often it is sent?"""

import math
import struct
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from rotrnn_core import records
from store import attempts, checkpoints, events, hidden_norms, ingest, logs, metrics, runs
from store.errors import BadCursor
from store.tables import CheckpointRow

LEAST = 5e-324
AWKWARD = [math.nan, math.inf, -math.inf, -0.0, 0.0, LEAST, -LEAST, 1.7976931348623157e308, 0.1, 1 / 3]
AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
property_test = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _bits(values: list[float]) -> list[bytes]:
    return [struct.pack("<d", value) for value in values]


@given(st.lists(st.floats(width=64), min_size=1, max_size=20))
@example(AWKWARD)
@property_test
def test_a_metric_comes_back_bit_for_bit(scene: Any, values: list[float]) -> None:
    values = [math.nan if math.isnan(value) else value for value in values]
    claim = scene.claimed()
    scene.write(claim, metrics=[("train_loss", step, value) for step, value in enumerate(values, 1)])
    (series,) = metrics.read(scene.session, claim.run_id, ["train_loss"])
    assert series.steps == list(range(1, len(values) + 1))
    assert _bits(series.values) == _bits(values)


@given(
    st.lists(st.floats(width=64), min_size=2, max_size=2),
    st.lists(st.floats(width=32), min_size=6, max_size=6),
)
@example([math.nan, LEAST], [math.nan, math.inf, -math.inf, -0.0, 2.0**-149, 3.4028234663852886e38])
@property_test
def test_a_trace_comes_back_bit_for_bit(scene: Any, layers: list[float], flat: list[float]) -> None:
    layers = [math.nan if math.isnan(value) else value for value in layers]
    flat = [math.nan if math.isnan(value) else value for value in flat]
    sent = scene.norms(
        mean=tuple(layers),
        deviation=tuple(reversed(layers)),
        minimum=tuple(layers),
        maximum=tuple(layers),
        non_finite=(0, 2**31 - 1),
        profile=(tuple(flat[:3]), tuple(flat[3:])),
    )
    claim = scene.claimed()
    scene.write(claim, hidden_norms=[sent])
    (trace,) = hidden_norms.read(scene.session, claim.run_id, ["relative"], include_profile=True)
    assert trace.steps == [0]
    for name in ("mean", "deviation", "minimum", "maximum"):
        (got,) = getattr(trace, name)
        assert _bits(got) == _bits(getattr(sent, name))
    assert trace.non_finite == [[0, 2**31 - 1]]
    assert trace.profile is not None
    assert [_bits(row) for row in trace.profile[0]] == [_bits(list(row)) for row in sent.profile]
    of_many = hidden_norms.traces(scene.session, [claim.run_id], "relative")[claim.run_id]
    assert _bits(of_many.mean[0]) == _bits(layers)


def test_a_batch_sent_twice_is_stored_once(scene: Any) -> None:
    claim = scene.claimed()
    batch = {
        "started": records.Started(0, 100, 77, "cuda:0", (1, 2), {"torch": "2.13.0"}),
        "metrics": [("train_loss", step, math.nan) for step in (1, 2)] + [("train_loss", 1, math.nan)],
        "hidden_norms": [scene.norms(step=step, statistic=name) for step in (0, 1) for name in records.STATISTICS],
        "logs": [(sequence, AT, "info", f"line {sequence}") for sequence in (1, 2, 3)],
        "checkpoints": [records.Checkpoint(2, "2.pt", "f" * 64, 123)],
        "step": 2,
    }

    def seen() -> Any:
        run = runs.get(scene.session, claim.run_id)
        return (
            [(series.key, series.steps, series.attempts) for series in metrics.read(scene.session, claim.run_id)],
            hidden_norms.read(scene.session, claim.run_id),
            [(line.sequence, line.at, line.message) for line in logs.read(scene.session, claim.run_id).items],
            [(kept.step, kept.path, kept.size_bytes) for kept in checkpoints.newest_first(scene.session, claim.run_id)],
            (run.step, run.parameter_count, run.device, run.profile_positions),
            [(row.resumed_from_step, row.environment) for row in attempts.read(scene.session, claim.run_id)],
            [event.kind for event in events.read(scene.session, claim.run_id)],
        )

    scene.write(claim, **batch)
    once = seen()
    scene.write(claim, **batch)
    assert seen() == once
    assert once[0] == [("train_loss", [1, 2], [1, 1])]
    assert once[3:] == (
        [(2, "2.pt", 123)],
        (2, 77, "cuda:0", [1, 2]),
        [(0, {"torch": "2.13.0"})],
        ["submitted", "claimed", "started"],
    )


def test_a_beginning_sent_again_does_not_take_the_step_back(scene: Any) -> None:
    claim = scene.claimed()
    scene.start(claim)
    scene.write(claim, step=40)
    scene.start(claim)
    assert runs.get(scene.session, claim.run_id).step == 40


def test_nothing_of_a_batch_stays_when_the_transaction_fails(scene: Any) -> None:
    claim = scene.claimed()
    ingest.write(scene.session, claim.run_id, 1, claim.token, ingest.Batch(metrics=[("train_loss", 1, 1.0)]))
    scene.session.rollback()
    assert metrics.read(scene.session, claim.run_id) == []
    scene.write(claim, metrics=[("train_loss", 1, 2.0)])
    assert metrics.read(scene.session, claim.run_id)[0].values == [2.0]


def test_batches_of_two_runs_in_one_transaction_do_not_mix(scene: Any) -> None:
    one, other = scene.claimed(), scene.claimed()
    for claim, value in ((one, 1.0), (other, 2.0)):
        batch = ingest.Batch(metrics=[("train_loss", int(value), value)])
        ingest.write(scene.session, claim.run_id, claim.attempt, claim.token, batch)
    scene.session.commit()
    assert [series.values for series in metrics.read(scene.session, one.run_id)] == [[1.0]]
    assert [series.values for series in metrics.read(scene.session, other.run_id)] == [[2.0]]


def test_concurrent_batches_of_one_run_do_not_deadlock(scene: Any, sessions: sessionmaker[Session]) -> None:
    claim = scene.claimed()
    points = [("train_loss", step, float(step)) for step in range(200)]
    failures: list[BaseException] = []

    def send(order: int) -> None:
        try:
            for _ in range(5):
                with sessions.begin() as session:
                    batch = ingest.Batch(metrics=points[::order], step=200)
                    ingest.write(session, claim.run_id, claim.attempt, claim.token, batch)
        except BaseException as failure:  # noqa: BLE001 (handed to the test's own thread)
            failures.append(failure)

    threads = [threading.Thread(target=send, args=(order,)) for order in (1, -1, 1, -1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert metrics.read(scene.session, claim.run_id)[0].steps == list(range(200))


def test_lines_of_any_bytes_can_be_kept_and_read_on_from_a_cursor(scene: Any) -> None:
    claim = scene.claimed()
    odd = ["plain", "NUL \x00", "half \udcff", "", "tab\tand\nnewline", "\U0001f600", "back\\slash"]
    lines = [(number, AT + timedelta(seconds=number), "info", text) for number, text in enumerate(odd)]
    scene.write(claim, logs=lines)
    first = logs.read(scene.session, claim.run_id, limit=3)
    rest = logs.read(scene.session, claim.run_id, after=first.next_cursor, limit=100)
    kept = [line.message for line in [*first.items, *rest.items]]
    assert kept == ["plain", "NUL \ufffd", "half ?", "", "tab\tand\nnewline", "\U0001f600", "back\\slash"]
    assert [line.at for line in first.items] == [at for _, at, _, _ in lines[:3]]
    end = logs.read(scene.session, claim.run_id, after=rest.next_cursor)
    assert (end.items, end.next_cursor) == ([], rest.next_cursor)
    assert [line.message for line in logs.tail(scene.session, claim.run_id, 2)] == kept[-2:]


def test_lines_follow_attempt_by_attempt(scene: Any) -> None:
    first = scene.claimed()
    scene.write(first, logs=[(5, AT, "info", "first")])
    runs.give_back(scene.session, first.run_id, 1, first.token, "bye")
    scene.session.commit()
    second = scene.claim(first.run_id)
    scene.write(second, logs=[(0, AT, "info", "second")])
    page = logs.read(scene.session, first.run_id, after="1:4", limit=1)
    assert [line.message for line in page.items] == ["first"]
    page = logs.read(scene.session, first.run_id, after=page.next_cursor)
    assert [line.message for line in page.items] == ["second"]


@pytest.mark.parametrize("cursor", ["", "1", "a:b", "1:2:3", "-1:2", "1:99999999999999999999", "1:2;", "\u0661:1"])
def test_a_made_up_place_in_the_log_is_refused(scene: Any, cursor: str) -> None:
    with pytest.raises(BadCursor):
        logs.read(scene.session, scene.add(), after=cursor)


def test_the_same_step_may_have_a_checkpoint_of_each_attempt(scene: Any) -> None:
    first = scene.claimed()
    scene.start(first)
    scene.write(first, checkpoints=[records.Checkpoint(5, "one.pt", "1" * 64, 1)])
    runs.give_back(scene.session, first.run_id, 1, first.token, "bye")
    scene.session.commit()
    second = scene.claim(first.run_id)
    scene.write(second, checkpoints=[records.Checkpoint(5, "two.pt", "2" * 64, 1)])
    paths = [kept.path for kept in checkpoints.newest_first(scene.session, first.run_id)]
    assert paths == ["two.pt", "one.pt"]
    assert len(scene.session.scalars(select(CheckpointRow)).all()) == 2


def test_what_the_tested_network_took_for_what_is_kept_with_the_run(scene: Any) -> None:
    claim, other = scene.claimed(), scene.claimed()
    for _ in range(2):
        scene.write(claim, confusion=((3, 1), (0, 4)))
    scene.write(other, step=3)
    assert runs.confusions(scene.session, [claim.run_id, other.run_id]) == {claim.run_id: [[3, 1], [0, 4]]}
    assert runs.get(scene.session, other.run_id).confusion is None
