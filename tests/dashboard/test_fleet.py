"""Does the page of workers say what the queue waits for, how fast it goes and what ended?"""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from client import Worker
from dashboard.figures.pace import STRETCHES, ended, pace_figure, pace_sheet
from dashboard.fleet import in_queue_order, queue_sheet, steps_per_s, throughput, waits_for, workers_sheet
from store import workers
from store.engine import session_factory

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


def worker(name: str, state: str = "idle", run_id: str | None = None) -> Worker:
    return Worker(name, "desk", "cpu", None, NOON, NOON, 4.0, state, run_id)


def queued(run: Any, **changed: Any) -> Any:
    return run(**({"status": "queued", "step": 0, "attempt": 0, "started_at": None, "finished_at": None} | changed))


def test_the_queue_goes_by_priority_and_then_by_age(run: Any) -> None:
    early = queued(run, seed=1)
    late = queued(run, seed=2, queued_at=NOON + timedelta(seconds=5))
    urgent = queued(run, seed=3, priority="high", queued_at=NOON + timedelta(seconds=9))
    assert in_queue_order([late, early, urgent]) == [urgent, early, late]


@pytest.mark.parametrize(
    ("fleet", "ahead", "waited", "said"),
    [
        ([], 0, 1, "no worker is alive"),
        ([worker("a", "unknown")], 0, 1, "no worker is alive"),
        ([worker("a", "busy")], 0, 1, "the worker is busy, next in line"),
        ([worker("a", "busy"), worker("b", "busy")], 3, 1, "all 2 workers are busy, 3 runs ahead"),
        ([worker("a")], 0, 1, "a free worker takes it within seconds"),
        ([worker("a")], 0, 90, "a worker is free but does not take it: see the dispatcher's log"),
        ([worker("a")], 1, 1, "the worker is busy, 1 run ahead"),
    ],
)
def test_a_run_says_what_it_waits_for(run: Any, fleet: list[Worker], ahead: int, waited: float, said: str) -> None:
    assert waits_for(queued(run), ahead, fleet, waited) == said


def test_a_run_that_was_tried_says_so(run: Any) -> None:
    again = queued(run, attempt=2, reason="the worker was lost")
    assert waits_for(again, 0, [worker("a")], 1).startswith("tried 2 times before (the worker was lost); a pause")


def test_the_pace_follows_from_the_time_left(run: Any) -> None:
    training = run(status="running", step=50, seconds_left=75.0)
    assert steps_per_s(training) == 2
    assert steps_per_s(run()) is None
    assert throughput([training, training, run(status="running", step=0)]) == 4
    assert throughput([]) is None


def test_workers_that_train_stand_first_with_their_run(run: Any) -> None:
    training = run(status="running", step=50, seconds_left=75.0, name="mine")
    sheet = workers_sheet([worker("a"), worker("b", "busy", training.id)], [training])
    assert sheet["Worker"] == ["b", "a"]
    assert (sheet["Run"], sheet["Progress"], sheet["Steps per second"]) == (["mine", ""], [25.0, None], [2.0, None])


def test_the_sheet_of_the_queue_tells_paused_from_queued(run: Any) -> None:
    sheet = queue_sheet([queued(run), queued(run, status="paused")], [], NOON + timedelta(seconds=61))
    assert sheet["For"] == ["no worker is alive", "paused by hand, until it is resumed"]
    assert sheet["Waits"] == ["1 min 1 s"] * 2


def test_ends_are_counted_in_their_stretch_and_older_ones_are_not(run: Any) -> None:
    now = NOON + timedelta(hours=24)
    runs = [
        run(finished_at=now - timedelta(minutes=1)),
        run(finished_at=now - timedelta(minutes=61)),
        run(status="diverged", finished_at=now - timedelta(minutes=2)),
        run(finished_at=now - timedelta(hours=25)),
    ]
    counts = ended(runs, now, 24)
    assert counts["succeeded"] == [0] * (STRETCHES - 2) + [1, 1]
    assert counts["diverged"][-1] == 1
    figure = pace_figure(counts, now, 24, UTC, "light")
    assert [trace.name.split()[-1] for trace in figure.data] == ["succeeded", "diverged"]
    assert list(figure.data[0].y) == counts["succeeded"]
    sheet = pace_sheet(counts, now, 24)
    assert (len(sheet["begin"]), sheet["failed"]) == (STRETCHES, [0] * STRETCHES)


def test_the_page_shows_workers_queue_and_ends(service: Any, open_at: Any) -> None:
    with session_factory(service.engine)() as session:
        workers.beat(session, "desk:cpu", host="desk", device="cpu", device_uuid="desk-0", pid=7, environment={})
        session.commit()
    page = open_at(service, "fleet")
    facts = {metric.label: metric.value for metric in page.metric}
    assert (facts["Busy"], facts["Waiting"]) == ("0 / 1", "1")
    tables = [table.value for table in page.dataframe]
    assert tables[0]["Worker"].tolist() == ["desk:cpu"]
    assert tables[1]["Run"].tolist() == ["waiting"]
    assert page.query_params["span"] == "24 h"
    assert not page.error


def test_without_workers_the_page_says_how_to_start_one(empty_service: Any, open_at: Any) -> None:
    page = open_at(empty_service, "fleet")
    assert "No worker has been heard of" in page.header[0].value
    assert page.info[0].value == "Nothing waits."
