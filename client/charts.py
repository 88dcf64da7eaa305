"""What does a chart of many series hold? Lines over common buckets of steps, as frozen types."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One metric of one run: `values` where its points are few, else what the points of each bucket come to.

    steps are those of the points, or the first step of each bucket; minimum and maximum are over finite values.
    """

    run_id: str
    key: str
    steps: tuple[int, ...]
    values: tuple[float, ...] | None
    first: tuple[float, ...] = ()
    last: tuple[float, ...] = ()
    minimum: tuple[float | None, ...] = ()
    maximum: tuple[float | None, ...] = ()
    points: tuple[int, ...] = ()
    non_finite: tuple[int, ...] = ()


@dataclass(frozen=True)
class Chart:
    """Lines over common buckets of `width` steps, in the order of runs, then keys."""

    width: int
    lines: tuple[Line, ...]
