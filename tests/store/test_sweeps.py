"""Is a sweep added, counted and cancelled as one, fast, and all or nothing?"""

from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import event, func, select

from store import events, outbox, runs, sweeps
from store.errors import NotFound
from store.status import Status
from store.tables import EventRow, OutboxRow, RunRow, SweepRow, SweepRunRow

CONFIG = {"model": {"d_model": 64, "d_state": 64, "n_layers": 2, "cell": {"name": "rotrnn", "n_heads": 8}}}


def _add(scene: Any, number: int, **options: Any) -> sweeps.Added:
    cells = [scene.new(config_hash=f"hash-{seed}", seed=seed) for seed in range(number)]
    added = sweeps.add(
        scene.session, config=CONFIG, grid={"training.seed": list(range(number))}, cells=cells, **options
    )
    scene.session.commit()
    return added


def test_thousands_of_runs_are_added_in_a_few_statements(scene: Any) -> None:
    many = 2_000
    statements: list[str] = []
    event.listen(scene.session.get_bind(), "before_cursor_execute", lambda *given: statements.append(given[2]))
    added = _add(scene, many)
    assert len(statements) < 12
    for table in (RunRow, OutboxRow, EventRow, SweepRunRow):
        assert scene.session.scalar(select(func.count()).select_from(table)) == many
    seeds = {row.id: row.seed for row in scene.session.execute(select(RunRow.id, RunRow.seed))}
    assert [seeds[run_id] for run_id in added.run_ids] == list(range(many))
    assert [hint.run_id for hint in outbox.take(scene.session, 5)] == added.run_ids[:5]
    assert sweeps.counts(scene.session, [added.sweep.id]) == {added.sweep.id: {Status.QUEUED: many}}
    assert runs.get(scene.session, added.run_ids[7]).config == scene.new().config


def test_a_sweep_is_there_as_a_whole_or_not_at_all(scene: Any) -> None:
    cells = [scene.new(), scene.new(total_steps=0)]
    with pytest.raises(Exception, match="ck_runs_steps"):
        sweeps.add(scene.session, config=CONFIG, grid={}, cells=cells)
    scene.session.rollback()
    for table in (RunRow, OutboxRow, EventRow, SweepRow, SweepRunRow):
        assert scene.session.scalar(select(func.count()).select_from(table)) == 0


def test_counts_and_runs_of_several_sweeps_are_read_at_once(scene: Any) -> None:
    one, other = _add(scene, 3), _add(scene, 2)
    scene.claim(one.run_ids[0])
    runs.request_cancel(scene.session, one.run_ids[1])
    scene.session.commit()
    ids = [one.sweep.id, other.sweep.id]
    assert sweeps.counts(scene.session, [*ids, uuid := uuid4()]) == {
        one.sweep.id: {Status.RUNNING: 1, Status.CANCELLED: 1, Status.QUEUED: 1},
        other.sweep.id: {Status.QUEUED: 2},
        uuid: {},
    }
    assert sweeps.run_ids(scene.session, ids) == {one.sweep.id: one.run_ids, other.sweep.id: other.run_ids}
    page = sweeps.page(scene.session, None, 1)
    rest = sweeps.page(scene.session, page.next_cursor, 1)
    assert [sweep.id for sweep in page.items + rest.items] == [other.sweep.id, one.sweep.id]
    assert rest.next_cursor is None
    assert (one.sweep.total, one.sweep.reused) == (3, 0)
    assert sweeps.get(scene.session, one.sweep.id).config == CONFIG


def test_reuse_fills_a_cell_with_the_run_that_is_there_and_force_makes_all_anew(scene: Any) -> None:
    first = _add(scene, 3)
    runs.request_cancel(scene.session, first.run_ids[1])
    scene.session.commit()
    again = _add(scene, 4, dedupe="reuse")
    assert again.sweep.reused == 2
    assert [run_id in first.run_ids for run_id in again.run_ids] == [True, False, True, False]
    assert again.run_ids[0] == first.run_ids[0]
    shown = {run.id for run in runs.page(scene.session, runs.Filters(sweep_id=again.sweep.id)).items}
    assert shown == set(again.run_ids)
    forced = _add(scene, 3)
    assert not set(forced.run_ids) & set(first.run_ids)


def test_cancelling_a_sweep_ends_what_waits_asks_what_runs_and_spares_results_and_borrowed_runs(scene: Any) -> None:
    lender = _add(scene, 1)
    added = _add(scene, 5, dedupe="reuse")
    borrowed, waiting, running, done, paused = added.run_ids
    assert borrowed == lender.run_ids[0]
    scene.claim(running)
    scene.finish(scene.claim(done), Status.SUCCEEDED)
    runs.request_pause(scene.session, paused)
    scene.session.commit()
    assert sweeps.cancel(scene.session, added.sweep.id) == 3
    scene.session.commit()
    assert [scene.status(run_id) for run_id in added.run_ids] == [
        Status.QUEUED,
        Status.CANCELLED,
        Status.CANCELLING,
        Status.SUCCEEDED,
        Status.CANCELLED,
    ]
    assert sweeps.cancel(scene.session, added.sweep.id) == 0
    assert events.read(scene.session, running)[-1].kind == "cancel_requested"
    beat_of = runs.get(scene.session, running)
    assert runs.beat(scene.session, running, 1, beat_of.lease_token, step=1, lease_s=60).cancel
    assert waiting not in {hint.run_id for hint in outbox.take(scene.session)}


def test_an_unknown_sweep_is_not_found(scene: Any) -> None:
    for act in (sweeps.get, sweeps.cancel):
        with pytest.raises(NotFound, match="there is no sweep"):
            act(scene.session, uuid4())
