"""Which runs were deleted, so that the files they left can be removed?"""

from collections.abc import Collection
from uuid import UUID

from sqlalchemy import ARRAY, Uuid, any_, delete, func, literal, select, text
from sqlalchemy.orm import Session

from store.tables import DeletedRunRow


def among(session: Session, run_ids: Collection[UUID]) -> set[UUID]:
    """Those of the runs that were deleted here; a run that this database never knew is none of them."""
    asked = literal(list(run_ids), ARRAY(Uuid))
    return set(session.scalars(select(DeletedRunRow.run_id).where(DeletedRunRow.run_id == any_(asked))))


def forget(session: Session, older_than_s: float) -> int:
    """Drop what was deleted long ago; how many there were."""
    long_ago = func.clock_timestamp() - literal(older_than_s) * text("interval '1 second'")
    return len(
        session.scalars(
            delete(DeletedRunRow).where(DeletedRunRow.deleted_at < long_ago).returning(DeletedRunRow.run_id)
        ).all()
    )
