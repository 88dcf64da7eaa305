"""Which checkpoints does a run have?"""

from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from store.tables import CheckpointRow


def newest_first(session: Session, run_id: UUID) -> list[CheckpointRow]:
    """Every checkpoint of the run, the one that is furthest in training first."""
    return list(
        session.scalars(
            select(CheckpointRow)
            .where(CheckpointRow.run_id == run_id)
            .order_by(CheckpointRow.step.desc(), CheckpointRow.attempt.desc())
        )
    )
