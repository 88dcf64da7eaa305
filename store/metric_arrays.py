"""What did many runs measure of one key? Each run's effective series as arrays, by one query."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.orm import Session

from store.effective import windows
from store.engine import BINARY
from store.tables import MetricRow


@dataclass(frozen=True)
class Points:
    """One metric of one run: steps and values, (recorded,)."""

    steps: NDArray[np.int64]
    values: NDArray[np.float64]


def read(session: Session, run_ids: Sequence[UUID], key: str) -> dict[UUID, Points]:
    """The series of those runs that have points."""
    counting = windows(run_ids)
    point = MetricRow
    in_order = (func.array_agg(aggregate_order_by(column, point.step)) for column in (point.step, point.value))
    found = session.execute(
        select(counting.c.run_id, *in_order)
        .join(
            point,
            (point.run_id == counting.c.run_id)
            & (point.key == key)
            & (point.attempt == counting.c.attempt)
            & (point.step > counting.c.after)
            & (point.step <= counting.c.until),
        )
        .group_by(counting.c.run_id)
        .execution_options(**BINARY)
    )
    return {
        run_id: Points(np.array(steps, dtype=np.int64), np.array(values, dtype=np.float64))
        for run_id, steps, values in found
    }
