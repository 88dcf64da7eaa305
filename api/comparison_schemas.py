"""What do comparisons over seeds look like on the wire?"""

from uuid import UUID

from pydantic import Field

from api.fields import Number
from api.schemas import Wire
from store.status import Status


class SingleRunRead(Wire):
    """The curve of one run inside a group."""

    seed: int
    run_id: UUID
    status: Status
    steps: list[int]
    values: list[Number]


class HiddenNormGroupRead(Wire):
    """One statistic of one layer over the seeds of one task, cell and depth, per recorded step."""

    task: str
    cell: str
    depth: int
    layer: int = Field(description="Counted from 0, the layer next to the input.")
    statistic: str
    seeds: list[int]
    run_ids: list[UUID]
    steps: list[int]
    n: list[int] = Field(description="Seeds with a finite value at that step.")
    mean: list[Number] = Field(description='Over those seeds; "NaN" where there is none.')
    low: list[Number | None] = Field(description="Lower bound of the mean's 95% t interval; null where n < 2.")
    high: list[Number | None]
    minimum: list[Number]
    maximum: list[Number]
    non_finite: list[int] = Field(description="Seeds left out of that step because their value is not finite.")
    single: list[SingleRunRead] = Field(default_factory=list, description="Each run's own curve, with runs=true.")


class HiddenNormComparisonRead(Wire):
    """Hidden norms of several cells side by side."""

    statistic: str
    warnings: list[str] = Field(description="What makes the runs of a group unequal beside the seed.")
    groups: list[HiddenNormGroupRead]


class MeasureRead(Wire):
    """What a stability number means."""

    name: str
    title: str
    definition: str
    unit: str


class StabilityRowRead(Wire):
    """One measure of one task, cell and depth; spreads are natural logarithms, exp(x) is the factor."""

    task: str
    cell: str
    depth: int
    measure: str
    estimate: float | None = Field(description="Null where n is too small to say.")
    low: float | None
    high: float | None
    n: int = Field(description="Seeds.")


class PairedRead(Wire):
    """A cell minus RotRNN at equal depth and seed; depth null: over all depths, by the seeds that have them all."""

    task: str
    cell: str
    depth: int | None
    measure: str
    difference: float | None
    low: float | None
    high: float | None
    n: int


class VerdictRead(Wire):
    """Whether a statement is seen in the numbers; null when they do not decide it."""

    seen: bool | None
    text: str


class ClaimRead(Wire):
    """RotRNN's norm stays nearly constant in training (first half), LRU's does not (second half)."""

    rotrnn_constant: VerdictRead
    lru_not_constant: VerdictRead
    sentence: str


class AccuracyRead(Wire):
    """Final test accuracy of one task, cell and depth, in [0, 1]."""

    task: str
    cell: str
    depth: int
    estimate: float | None
    low: float | None
    high: float | None
    n: int


class StabilityRead(Wire):
    """The stability numbers of the chosen runs that succeeded or diverged."""

    tasks: list[str]
    measures: list[MeasureRead]
    rows: list[StabilityRowRead]
    paired: list[PairedRead]
    claim: ClaimRead
    accuracy: list[AccuracyRead]
    warnings: list[str] = Field(description="Runs left out, by name, and groups whose runs differ beside the seed.")
