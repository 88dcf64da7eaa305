"""Which steps of which attempt count? The effective series of a run has each step once.

A run's last attempt that began to train counts from the step it resumed from; up to that step counts the attempt whose
checkpoint it resumed from, and so on back to a fresh start. All other steps are superseded; they stay in their tables.
"""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ARRAY, CTE, Integer, Uuid, any_, case, literal, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import aliased

from store.tables import AttemptRow

_LAST_STEP = 2**31 - 1


def windows(run_ids: Sequence[UUID]) -> CTE:
    """For each attempt that counts: run_id, attempt, and its steps as after < step <= until."""
    begun = (
        select(AttemptRow.run_id, AttemptRow.number.label("attempt"), literal(_LAST_STEP, Integer).label("until"))
        .where(
            AttemptRow.run_id == any_(literal(list(run_ids), ARRAY(Uuid))), AttemptRow.resumed_from_step.is_not(None)
        )
        .ext(distinct_on(AttemptRow.run_id))
        .order_by(AttemptRow.run_id, AttemptRow.number.desc())
        .subquery()
    )
    chain = select(begun).cte("chain", recursive=True)
    child = aliased(AttemptRow)
    chain = chain.union_all(
        select(child.run_id, child.resumed_from_attempt, child.resumed_from_step)
        .join(chain, (chain.c.run_id == child.run_id) & (chain.c.attempt == child.number))
        .where(child.resumed_from_attempt.is_not(None))
    )
    # A fresh start counts from step 0 on, which is the probe before the first update.
    after = case((AttemptRow.resumed_from_step > 0, AttemptRow.resumed_from_step), else_=-1)
    return (
        select(chain.c.run_id, chain.c.attempt, after.label("after"), chain.c.until)
        .join(AttemptRow, (AttemptRow.run_id == chain.c.run_id) & (AttemptRow.number == chain.c.attempt))
        .cte("windows")
    )
