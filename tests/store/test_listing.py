"""Are listings complete, stable while runs are added, and filtered as asked?"""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event, func, update

from store import cursors, runs, sweeps
from store.errors import BadCursor
from store.runs import Filters
from store.status import Status
from store.tables import RunRow


def _pages(scene: Any, filters: Filters, limit: int, meanwhile: Any = lambda: None) -> list[UUID]:
    seen: list[UUID] = []
    cursor = None
    while True:
        page = runs.page(scene.session, filters, cursor, limit)
        seen += [run.id for run in page.items]
        if page.next_cursor is None:
            return seen
        cursor = page.next_cursor
        meanwhile()


@pytest.mark.parametrize("limit", [1, 3, 7, 8, 100])
def test_pages_are_complete_newest_first_and_stable_while_runs_are_added(scene: Any, limit: int) -> None:
    made = [scene.add() for _ in range(7)]
    assert _pages(scene, Filters(), limit, meanwhile=scene.add) == made[::-1]


def test_runs_of_the_same_instant_are_listed_once_each(scene: Any) -> None:
    made = {scene.add() for _ in range(9)}
    scene.session.execute(update(RunRow).values(created_at=func.now()))
    scene.session.commit()
    seen = _pages(scene, Filters(), 2)
    assert len(seen) == 9
    assert set(seen) == made


def test_a_page_that_ends_the_listing_has_no_cursor(scene: Any) -> None:
    for _ in range(2):
        scene.add()
    assert runs.page(scene.session, Filters(), None, 2).next_cursor is None
    assert runs.page(scene.session, Filters(status=[Status.FAILED]), None, 2).items == []


@given(st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1)), st.uuids())
def test_a_cursor_comes_back_as_it_was(at: datetime, id: UUID) -> None:
    at = at.replace(tzinfo=UTC)
    assert cursors.decode(cursors.encode(at, id)) == (at, id)


MADE_UP = [
    "",
    "x",
    "made up",
    "AAAA",
    "\u00fc" * 8,
    "'; DROP TABLE runs; --",
    base64.b64encode(b"1" * 25).decode(),
    base64.b64encode(b"\x7f" * 24).decode(),
    base64.b64encode(b"\x80" + b"\0" * 23).decode(),
]


@pytest.mark.parametrize("cursor", MADE_UP)
def test_a_made_up_cursor_is_refused(scene: Any, cursor: str) -> None:
    with pytest.raises(BadCursor, match="is not a cursor of this listing"):
        runs.page(scene.session, Filters(), cursor, 10)
    with pytest.raises(BadCursor):
        sweeps.page(scene.session, cursor, 10)


def test_filters_show_exactly_the_runs_that_pass_all_of_them(scene: Any) -> None:
    made = {
        (cell, task, depth, seed): scene.add(cell=cell, task=task, depth=depth, seed=seed)
        for cell in ("rotrnn", "lru-tied")
        for task in ("listops", "digits")
        for depth in (1, 2)
        for seed in (0, 1)
    }
    cancelled = made["rotrnn", "listops", 1, 0]
    runs.request_cancel(scene.session, cancelled)
    scene.session.commit()

    def shown(**filters: Any) -> set[UUID]:
        return set(_pages(scene, Filters(**filters), 3))

    assert shown(cell=["rotrnn"]) == {id for key, id in made.items() if key[0] == "rotrnn"}
    assert shown(cell=["rotrnn", "lru-tied"]) == set(made.values())
    assert shown(task=["digits"], depth=[2], seed=[1]) == {
        id for key, id in made.items() if key[1:] == ("digits", 2, 1)
    }
    assert shown(status=[Status.CANCELLED]) == {cancelled}
    assert shown(status=[Status.CANCELLED, Status.QUEUED]) == set(made.values())
    assert shown(cell=["gru"]) == set()
    assert shown(sweep_id=uuid4()) == set()


def test_a_page_takes_the_same_number_of_queries_however_long_it_is(scene: Any) -> None:
    for _ in range(8):
        scene.add()
    statements: list[str] = []
    event.listen(scene.session.get_bind(), "before_cursor_execute", lambda *given: statements.append(given[2]))
    for limit in (1, 8):
        scene.session.expunge_all()
        statements.clear()
        runs.page(scene.session, Filters(), None, limit)
        assert len(statements) == 1


def test_a_page_shows_the_runs_as_they_are_now(scene: Any, sessions: Any) -> None:
    run_id = scene.add()
    assert runs.page(scene.session, Filters()).items[0].status is Status.QUEUED
    scene.session.commit()
    with sessions.begin() as other:
        runs.request_cancel(other, run_id)
    assert runs.page(scene.session, Filters()).items[0].status is Status.CANCELLED
    assert runs.get(scene.session, run_id).status is Status.CANCELLED


def test_runs_are_counted_by_state(scene: Any) -> None:
    for status in Status:
        scene.put(status)
    scene.add()
    assert runs.counts(scene.session) == dict.fromkeys(Status, 1) | {Status.QUEUED: 2}


def test_a_comparison_has_the_newest_begun_run_of_each_configuration(scene: Any) -> None:
    runs_of: dict[str, list[Any]] = {"a": [], "b": [], "c": [], "d": []}
    for config_hash, ends in (
        ("a", [Status.SUCCEEDED, Status.DIVERGED, Status.FAILED]),
        ("b", [Status.SUCCEEDED, Status.CANCELLED, Status.QUEUED]),
        ("c", [Status.SUCCEEDED, Status.RUNNING]),
        ("d", [Status.FAILED]),
    ):
        for status in ends:
            run_id = scene.put(status)
            scene.session.execute(update(RunRow).where(RunRow.id == run_id).values(config_hash=config_hash))
            runs_of[config_hash].append(run_id)
    scene.session.commit()
    wanted = {runs_of["a"][1], runs_of["b"][0], runs_of["c"][1]}
    assert {run.id for run in runs.comparable(scene.session, Filters())} == wanted
    assert runs.comparable(scene.session, Filters(cell=["gru"])) == []


def test_a_cell_is_filled_by_a_result_first_and_never_by_a_failure(scene: Any) -> None:
    made = {}
    for status in (Status.SUCCEEDED, Status.RUNNING, Status.FAILED, Status.CANCELLED, Status.CANCELLING):
        made[status] = scene.put(status)
    assert runs.reusable(scene.session, ["hash", "none"]) == {"hash": made[Status.SUCCEEDED]}
    scene.session.execute(update(RunRow).where(RunRow.id == made[Status.SUCCEEDED]).values(config_hash="x"))
    assert runs.reusable(scene.session, ["hash"]) == {"hash": made[Status.RUNNING]}
    scene.session.execute(update(RunRow).where(RunRow.id == made[Status.RUNNING]).values(config_hash="y"))
    assert runs.reusable(scene.session, ["hash"]) == {}


def test_the_cursor_keeps_microseconds(scene: Any) -> None:
    at = datetime(2026, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
    assert cursors.decode(cursors.encode(at, uuid4()))[0] - at == timedelta(0)
