"""Do packed traces keep every bit in little space, and is each record kept once however it was packed?"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps
from sqlalchemy import Engine, func, select, text
from sqlalchemy.orm import Session

from store import hidden_norms, migrate, trace_ingest
from store.engine import make_engine, session_factory
from store.tables import HiddenNormRow, RunRow
from store.trace_encoding import pack, ratio, unpack
from store.traces import Stretch

KINDS = st.sampled_from([(np.float64, np.int64), (np.float32, np.int32), (np.int32, np.int32)])
SHAPES = nps.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=6)
NAMES = ("mean", "deviation", "minimum", "maximum", "non_finite")
property_test = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(KINDS, SHAPES, st.data())
@settings(max_examples=60, deadline=None)
def test_every_bit_pattern_is_packed_and_comes_back(kind: Any, shape: tuple[int, int], data: st.DataObject) -> None:
    numbers, integers = kind
    bits = data.draw(nps.arrays(integers, shape))
    for predicted in (None, data.draw(nps.arrays(integers, shape)).view(numbers)):
        packed = pack(bits.view(numbers), predicted)
        back = unpack(packed, numbers, shape[0], predicted)
        assert back.view(integers).tolist() == bits.tolist()


def test_a_ratio_that_is_no_number_has_the_same_bits_everywhere() -> None:
    found = ratio(np.array([[0.0, -math.inf, -math.nan]]), np.array([0.0, math.inf, 1.0]))
    assert set(found.view(np.int64).ravel().tolist()) == {np.array([math.nan]).view(np.int64)[0]}


def _records(scene: Any, steps: list[int], unit: tuple[float, ...] = (3.7, 0.3)) -> list[Any]:
    """Whole norms, and the relative ones as a probe derives them."""
    made = []
    for step in steps:
        rng = np.random.default_rng(step)
        arrays = {name: tuple(rng.lognormal(size=2).tolist()) for name in ("mean", "deviation", "minimum", "maximum")}
        profile = rng.lognormal(size=(2, 3))
        shares = {name: tuple(v / u for v, u in zip(values, unit, strict=True)) for name, values in arrays.items()}
        for statistic, values, along in (
            ("whole", arrays, profile),
            ("relative", shares, profile / [[u] for u in unit]),
        ):
            rounded = tuple(map(tuple, along.astype(np.float32).tolist()))
            made.append(scene.norms(step=step, statistic=statistic, profile=rounded, **values))
    return made


def _stored(scene: Any, run_id: Any) -> dict[tuple[str, int], Any]:
    """Every record by statistic and step, as it is read back."""
    found = {}
    for trace in hidden_norms.read(scene.session, run_id, include_profile=True):
        profiles = dict(zip(trace.profile_steps or [], trace.profile or [], strict=True))
        for place, step in enumerate(trace.steps):
            assert (trace.statistic, step) not in found
            found[trace.statistic, step] = (*(tuple(getattr(trace, name)[place]) for name in NAMES), profiles[step])
    return found


def _as_read(record: Any) -> Any:
    return (*(getattr(record, name) for name in NAMES), [list(row) for row in record.profile])


@given(st.lists(st.integers(0, 60), min_size=1, max_size=50, unique=True), st.integers(1, 3), st.randoms())
@property_test
def test_records_sent_in_any_order_and_again_are_kept_once(
    scene: Any, steps: list[int], size: int, random: Any
) -> None:
    claim = scene.claimed(total_steps=60)
    sent = _records(scene, steps)
    batches = [sent[place : place + size] for place in range(0, len(sent), size)]
    for batch in batches + random.sample(batches, k=min(5, len(batches))):
        scene.write(claim, hidden_norms=batch)
    assert _stored(scene, claim.run_id) == {(r.statistic, r.step): _as_read(r) for r in sent}
    rows = scene.session.scalar(
        select(func.count()).where(HiddenNormRow.run_id == claim.run_id, HiddenNormRow.statistic == "whole")
    )
    assert rows < 32


def test_a_share_takes_next_to_no_space_beside_its_whole(scene: Any) -> None:
    claim = scene.claimed(total_steps=400)
    scene.write(claim, hidden_norms=_records(scene, list(range(400))))
    sizes = dict(
        scene.session.execute(
            select(HiddenNormRow.statistic, func.sum(func.length(HiddenNormRow.mean))).group_by(HiddenNormRow.statistic)
        ).all()
    )
    assert sizes["relative"] < sizes["whole"] / 50
    assert len(_stored_steps(scene, claim.run_id)) == 400


def _stored_steps(scene: Any, run_id: Any) -> list[int]:
    return hidden_norms.read(scene.session, run_id, ["relative"])[0].steps


def test_a_long_run_keeps_a_profile_of_each_part_its_last_and_whatever_is_not_finite(scene: Any) -> None:
    total = 10 * trace_ingest.PARTS
    claim = scene.claimed(total_steps=total)
    steps = list(range(0, total + 1, 2))
    sent = [scene.norms(step=step, non_finite=(0, int(step == 778))) for step in steps]
    for place in range(0, len(sent), 100):
        scene.write(claim, hidden_norms=sent[place : place + 100])
    (trace,) = hidden_norms.read(scene.session, claim.run_id, include_profile=True)
    assert trace.steps == steps
    first: dict[int, int] = {}
    for step in steps:
        first.setdefault(step * trace_ingest.PARTS // (total + 1), step)
    assert trace.profile_steps == sorted({*first.values(), 778, total})
    assert trace.profile is not None
    assert len(trace.profile) == len(trace.profile_steps)


def test_a_deep_and_long_run_stays_under_20_megabytes(scene: Any) -> None:
    layers, recorded, positions = 32, 10_000, 64
    claim = scene.claimed(total_steps=recorded)
    run = scene.session.get_one(RunRow, claim.run_id)
    rng = np.random.default_rng(0)
    profiled = np.arange(0, recorded, recorded // trace_ingest.PARTS, dtype=np.int32)

    def walk(*shape: int) -> Any:
        return np.exp(np.cumsum(rng.normal(0, 3e-3, shape), axis=0))

    for first in range(0, recorded, 500):
        steps = np.arange(first, first + 500, dtype=np.int32)
        kept = profiled[(profiled >= first) & (profiled < first + 500)]
        made = {}
        for statistic in ("per_head", "whole"):
            mean, deviation, low, high = (walk(500, layers) for _ in range(4))
            profile = walk(kept.size, layers, positions).astype(np.float32)
            none = np.zeros((500, layers), np.int32)
            made[statistic] = Stretch(steps, mean, deviation, low, high, none, kept, profile)
        whole, unit = made["whole"], np.full(layers, 1.7)
        shares = {name: ratio(getattr(whole, name), unit) for name in ("mean", "deviation", "minimum", "maximum")}
        along = ratio(whole.profile.reshape(kept.size, -1), np.repeat(unit, positions)).reshape(whole.profile.shape)
        made["relative"] = replace(whole, **shares, profile=along)
        trace_ingest.insert(scene.session, run, made)
    scene.session.commit()
    size = scene.session.scalar(text("SELECT pg_total_relation_size('hidden_norms')"))
    assert size < 20e6
    assert hidden_norms.traces(scene.session, [claim.run_id], "relative")[claim.run_id].mean.shape == (recorded, layers)


OLD = text(
    "INSERT INTO hidden_norms VALUES (:run, :statistic, :step, 1, :mean, :mean, :mean, :mean, '{0, 3}', :profile)"
)


def test_the_migration_keeps_every_bit_of_what_was_there(empty_database_url: str) -> None:
    from alembic import command

    engine: Engine = make_engine(empty_database_url, application_name="tests")
    with engine.connect() as connection:
        config = migrate._config()
        config.attributes["connection"] = connection
        command.upgrade(config, "0002")
        connection.commit()
    values = [[math.nan, -0.0], [math.inf, 5e-324], [1 / 3, 0.1]]
    with session_factory(engine)() as session:
        run_id = _old_run(session)
        for step, mean in enumerate(values):
            for statistic in ("whole", "relative"):
                session.execute(
                    OLD, {"run": run_id, "statistic": statistic, "step": step, "mean": mean, "profile": [1.5, 2.5] * 2}
                )
        session.commit()
        migrate.migrate(empty_database_url)
        for trace in hidden_norms.read(session, run_id, ["whole", "relative"], include_profile=True):
            assert (trace.steps, trace.profile_steps) == ([0, 1, 2], [0, 1, 2])
            assert np.array(trace.mean).view(np.int64).tolist() == np.array(values).view(np.int64).tolist()
            assert trace.non_finite == [[0, 3]] * 3
            assert trace.profile == [[[1.5, 2.5]] * 2] * 3
    engine.dispose()


def _old_run(session: Session) -> Any:
    run_id = session.scalar(
        text(
            "INSERT INTO runs (id, config, config_hash, cell, task, depth, seed, total_steps, attempt) "
            "VALUES (gen_random_uuid(), '{}', '', 'lru', 'listops', 2, 0, 9, 1) RETURNING id"
        )
    )
    session.execute(
        text(
            "INSERT INTO attempts (run_id, number, worker_id, host, device, resumed_from_step) "
            "VALUES (:run, 1, 'w', 'h', 'cpu', 0)"
        ),
        {"run": run_id},
    )
    return run_id
