"""Does a deleted run leave nothing behind, and may only an ended run be deleted?"""

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import event, func, select

from rotrnn_core import records
from store import runs, sweeps
from store.errors import IllegalMove, NotFound
from store.status import TERMINAL, Status
from store.tables import Base, DeletedRunRow, IdempotencyRow, RunRow, SweepRow, TokenRow, WorkerRow

KEPT = {SweepRow, TokenRow, WorkerRow, IdempotencyRow, DeletedRunRow}


def _fill(scene: Any, run_id: Any) -> None:
    claim = scene.claim(run_id)
    scene.start(claim)
    scene.write(
        claim,
        metrics=[("train_loss", step, 1.0) for step in range(25)],
        hidden_norms=[scene.norms(step=step) for step in range(3)],
        logs=[(number, datetime.now(UTC), "info", "line") for number in range(7)],
        checkpoints=[records.Checkpoint(10, "10.pt", "0" * 64, 1)],
    )
    scene.finish(claim, Status.SUCCEEDED)


def test_a_deleted_run_is_gone_from_every_table_and_its_neighbour_is_whole(scene: Any) -> None:
    cells = [scene.new(config_hash=name) for name in ("a", "b")]
    gone, neighbour = sweeps.add(scene.session, config={}, grid={}, cells=cells).run_ids
    scene.session.commit()
    for run_id in (gone, neighbour):
        _fill(scene, run_id)
    tables = [mapper.class_ for mapper in Base.registry.mappers if mapper.class_ not in KEPT]
    sizes = {table: scene.session.scalar(select(func.count()).select_from(table)) for table in tables}
    assert all(size >= 2 for size in sizes.values()), sizes

    statements: list[str] = []
    event.listen(scene.session.get_bind(), "before_cursor_execute", lambda *given: statements.append(given[2]))
    runs.delete(scene.session, gone, batch=10)
    scene.session.commit()
    assert sum("DELETE FROM metrics" in statement for statement in statements) == 3

    for table in tables:
        assert scene.session.scalar(select(func.count()).select_from(table)) == sizes[table] / 2, table
        of_run = RunRow.id if table is RunRow else table.run_id
        assert scene.session.scalar(select(func.count()).select_from(table).where(of_run == gone)) == 0
    assert scene.session.scalar(select(func.count()).select_from(SweepRow)) == 1
    with pytest.raises(NotFound):
        runs.get(scene.session, gone)


@pytest.mark.parametrize("status", [status for status in Status if status not in TERMINAL])
def test_a_run_that_has_not_ended_is_not_deleted(scene: Any, status: Status) -> None:
    run_id = scene.put(status)
    with pytest.raises(IllegalMove, match=f"is {status}: it cannot be deleted"):
        runs.delete(scene.session, run_id)
    scene.session.rollback()
    assert scene.status(run_id) is status
