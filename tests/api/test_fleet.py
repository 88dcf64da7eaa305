"""Does the door say how the fleet stands, and delete only what was counted before?"""

import json
import re
from pathlib import Path
from typing import Any
from uuid import UUID

from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import func, text, update

from store import leases, workers
from store.status import FailureClass, Status
from store.tables import RunRow

DASHBOARD = Path(__file__).parents[2] / "deploy" / "grafana" / "rotbench.json"


def samples(door: Any) -> dict[tuple[str, ...], float]:
    families = text_string_to_metric_families(door.http.get("/metrics").text)
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


def test_the_metrics_speak_of_queue_leases_and_workers(fresh: Any) -> None:
    waiting, held = fresh.submit(), fresh.submit()
    fresh.train(held, metrics=[("train_loss", 1, 1.0)], status=None)
    with fresh.sessions() as session:
        for name, run_id in (("one", held), ("two", None)):
            workers.beat(session, name, host="h", device="cpu", device_uuid=name, pid=1, environment={}, run_id=run_id)
        late = func.clock_timestamp() - text("interval '90 s'")
        session.execute(update(RunRow).where(RunRow.id == waiting).values(queued_at=late))
        session.execute(update(RunRow).where(RunRow.id == held).values(lease_expires_at=late))
        session.commit()
    found = samples(fresh)
    assert 90 <= found["rotbench_oldest_queued_seconds",] < 300
    assert (found["rotbench_leases",], found["rotbench_leases_expired",]) == (1, 1)
    assert -300 < found["rotbench_lease_seconds_left",] <= -90
    states = [found["rotbench_workers", state] for state in ("busy", "idle", "unknown")]
    assert states == [1, 1, 0]
    assert found["rotbench_outbox_waiting",] == 2
    assert found["rotbench_runs", "queued"] == 1
    assert ("rotbench_inserted_rows_total", "metrics") in found


def test_every_metric_of_the_dashboard_is_one_that_the_door_gives(fresh: Any) -> None:
    fresh.http.get("/v1/runs")
    given = {name for name, *_ in samples(fresh)}
    dashboard = json.loads(DASHBOARD.read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked = {name for expression in expressions for name in re.findall(r"rotbench_\w+", expression)}
    assert asked <= given
    assert len(asked) >= 10


def ended(door: Any, status: Status, days: float) -> UUID:
    run_id: UUID = door.submit()
    if status is Status.FAILED:
        with door.sessions() as session:
            claim = leases.claim(session, run_id, worker_id="w", lease_s=60, host="h", device="cpu")
            assert claim is not None
            failed = {"status": status, "failure_class": FailureClass.CODE_ERROR, "reason": "x"}
            leases.finish(session, run_id, claim.attempt, claim.token, **failed)
            session.commit()
    else:
        door.train(run_id, metrics=[("train_loss", step, 1.0) for step in range(1, 8)])
    with door.sessions() as session:
        ago = func.clock_timestamp() - func.make_interval(0, 0, 0, days)
        session.execute(update(RunRow).where(RunRow.id == run_id).values(finished_at=ago))
        session.commit()
    return run_id


def purge(door: Any, **body: Any) -> dict[str, Any]:
    answer = door.http.post("/v1/gc", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_garbage_is_counted_first_and_then_exactly_that_is_deleted(fresh: Any) -> None:
    kept = [ended(fresh, Status.SUCCEEDED, 90), ended(fresh, Status.FAILED, 2), fresh.submit()]
    gone = ended(fresh, Status.FAILED, 40)
    before = fresh.stored()
    counted = purge(fresh)
    assert (counted["dry_run"], counted["runs"], counted["more"]) == (True, 1, False)
    assert fresh.stored() == before
    assert purge(fresh, dry_run=False)["runs"] == 1
    assert fresh.http.get(f"/v1/runs/{gone}").status_code == 404
    assert all(fresh.http.get(f"/v1/runs/{run_id}").status_code == 200 for run_id in kept)
    wide = purge(fresh, dry_run=False, status=["succeeded", "failed"], older_than_days=1)
    assert (wide["runs"], wide["points"]) == (2, 7)
    with fresh.sessions() as session:
        left = [session.execute(text(f"SELECT count(*) FROM {t}")).scalar_one() for t in ("metrics", "metric_blocks")]
    assert left == [0, 0]


def test_a_run_that_has_not_ended_is_never_garbage(fresh: Any) -> None:
    fresh.submit()
    assert fresh.http.post("/v1/gc", json={"status": ["queued"]}).status_code == 422
    assert purge(fresh, older_than_days=0)["runs"] == 0
