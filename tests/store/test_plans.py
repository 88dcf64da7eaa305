"""Do the queries that run all the time find their rows by an index, among ten thousand runs?"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, event, text, update
from sqlalchemy.orm import Session

from rotrnn_core import records
from store import charts, events, export, hidden_norms, ingest, metric_arrays, metrics, outbox, paces, runs, sweeps
from store.engine import session_factory
from store.runs import Filters, NewRun
from store.status import Status
from store.tables import OutboxRow

# Rows of runs that are gone stand for those of many others.
OTHERS = """
    INSERT INTO {table} SELECT (jsonb_populate_record(NULL::{table}, to_jsonb(row) || other)).*
    FROM (SELECT * FROM {table} LIMIT 40) AS row,
        (SELECT jsonb_build_object('run_id', gen_random_uuid()) AS other FROM generate_series(1, 100)) AS others
"""


@pytest.fixture(scope="module")
def crowd(module_engine: Engine) -> Iterator[tuple[Session, runs.Claim, Any]]:
    """Ten thousand queued runs of long ago, a small sweep, and one run with a long series."""
    many = [NewRun({}, f"hash-{seed}", "rotrnn", "listops", 1, seed, 100_000) for seed in range(10_000)]
    with session_factory(module_engine)() as session:
        sweeps.add(session, config={}, grid={}, cells=many)
        session.execute(update(OutboxRow).values(published_at=text("clock_timestamp()")))
        session.commit()
        added = sweeps.add(session, config={}, grid={}, cells=many[:5])
        session.commit()
        claim = runs.claim(session, added.run_ids[0], worker_id="w", lease_s=60, host="h", device="cpu")
        assert claim is not None
        points = [(key, step, 0.0) for key in ("a", "b", "c") for step in range(5_000)] + [("few", 1, 0.0)]
        traces = [
            records.HiddenNorms(step, name, *([(0.0,)] * 4), (0,), ((0.0,),))
            for step in range(500)
            for name in records.STATISTICS
        ]
        batch = ingest.Batch(metrics=points, hidden_norms=traces)
        ingest.write(session, claim.run_id, claim.attempt, claim.token, batch)
        for table in ("hidden_norms", "metric_blocks"):
            session.execute(text(OTHERS.format(table=table)))
        session.commit()
        session.connection(execution_options={"isolation_level": "AUTOCOMMIT"}).execute(text("VACUUM ANALYZE"))
        session.commit()
        yield session, claim, added.sweep.id


def _plan(session: Session, act: Callable[[], Any]) -> str:
    """The plans of all statements that the act sends, which is taken back."""
    sent: list[tuple[str, Any]] = []

    def note(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
        sent.append((statement, parameters))

    event.listen(session.get_bind(), "before_cursor_execute", note)
    try:
        act()
    finally:
        event.remove(session.get_bind(), "before_cursor_execute", note)
    lines: list[str] = []
    driver: Any = session.connection().connection.driver_connection
    for statement, parameters in sent:
        lines += [row[0] for row in driver.execute(f"EXPLAIN {statement}", parameters)]
    session.rollback()
    return "\n".join(lines)


HOT: dict[str, tuple[Callable[[Session, runs.Claim, Any], Any], str]] = {
    "first page": (lambda session, claim, sweep: runs.page(session, Filters(), None, 50), "ix_runs_newest"),
    "next page": (
        lambda session, claim, sweep: runs.page(
            session, Filters(), runs.page(session, Filters(), None, 50).next_cursor, 50
        ),
        "ix_runs_newest",
    ),
    "page of a state": (
        lambda session, claim, sweep: runs.page(session, Filters(status=[Status.FAILED]), None, 50),
        "ix_runs_status_newest",
    ),
    "page of a cell": (
        lambda session, claim, sweep: runs.page(session, Filters(cell=["rotrnn"], task=["listops"]), None, 50),
        "ix_runs_newest",
    ),
    "page of a cell that is rare": (
        lambda session, claim, sweep: runs.page(session, Filters(cell=["lru-tied"], task=["listops"]), None, 50),
        "ix_runs_group",
    ),
    "page of a sweep": (
        lambda session, claim, sweep: runs.page(session, Filters(sweep_id=sweep), None, 50),
        "pk_sweep_runs",
    ),
    "counts of a sweep": (lambda session, claim, sweep: sweeps.counts(session, [sweep]), "pk_sweep_runs"),
    "runs to reuse": (
        lambda session, claim, sweep: runs.reusable(session, ["hash-1", "hash-2"]),
        "ix_runs_config_hash",
    ),
    "claim": (
        lambda session, claim, sweep: runs.claim(
            session, claim.run_id, worker_id="w", lease_s=60, host="h", device="cpu"
        ),
        "pk_runs",
    ),
    "beat": (
        lambda session, claim, sweep: runs.beat(session, claim.run_id, claim.attempt, claim.token, step=1, lease_s=60),
        "pk_runs",
    ),
    "reap": (lambda session, claim, sweep: runs.reap(session), "ix_runs_lease"),
    "take": (lambda session, claim, sweep: outbox.take(session), "ix_outbox_waiting"),
    "series": (lambda session, claim, sweep: metrics.read(session, claim.run_id, ["a"]), "pk_metrics"),
    "series from a step on": (
        lambda session, claim, sweep: metrics.read(session, claim.run_id, ["a"], after_step=4_990),
        "pk_metrics",
    ),
    "chart": (
        lambda session, claim, sweep: charts.read(session, [claim.run_id], ["a", "b"], 10),
        "pk_metric_blocks",
    ),
    "chart of few points": (
        lambda session, claim, sweep: charts.read(session, [claim.run_id], ["few"], 10),
        "pk_metrics",
    ),
    "runs to compare": (
        lambda session, claim, sweep: runs.comparable(session, Filters(sweep_id=sweep)),
        "pk_sweep_runs",
    ),
    "events of a run": (lambda session, claim, sweep: events.read(session, claim.run_id), "pk_events"),
    "news": (lambda session, claim, sweep: events.since(session, {claim.run_id: 0}), "pk_events"),
    "points of many runs": (
        lambda session, claim, sweep: metric_arrays.read(session, [claim.run_id], "a"),
        "pk_metrics",
    ),
    "points to export": (
        lambda session, claim, sweep: export.points_after(session, claim.run_id, ["b"], ("b", 4_000), 100),
        "pk_metrics",
    ),
    "points that come in": (
        lambda session, claim, sweep: ingest.write(
            session, claim.run_id, claim.attempt, claim.token, ingest.Batch(metrics=[("a", 6_000, 1.0)])
        ),
        "pk_metric_blocks",
    ),
    "time left of a sweep": (lambda session, claim, sweep: paces.seconds_left(session, [sweep]), "pk_sweep_runs"),
    "last values": (
        lambda session, claim, sweep: metrics.latest(session, [claim.run_id], ["a", "b"]),
        "pk_metrics",
    ),
    "traces of a run in full": (
        lambda session, claim, sweep: hidden_norms.read(session, claim.run_id, include_profile=True),
        "pk_hidden_norms",
    ),
    "traces": (
        lambda session, claim, sweep: hidden_norms.traces(session, [claim.run_id], "relative"),
        "pk_hidden_norms",
    ),
}


@pytest.mark.parametrize("name", HOT)
def test_a_hot_query_goes_by_its_index(crowd: tuple[Session, runs.Claim, Any], name: str) -> None:
    act, index = HOT[name]
    plan = _plan(crowd[0], lambda: act(*crowd))
    assert index in plan, plan
    for table in ("runs", "metrics", "metric_blocks", "hidden_norms", "events", "outbox", "sweep_runs"):
        assert f"Seq Scan on {table} " not in plan, plan
