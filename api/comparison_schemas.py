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
    fields: dict[str, str] = Field(
        default_factory=dict, description="The values of the fields of group_by, as canonical JSON."
    )
    recorded_steps: int = Field(0, description="How many steps were recorded; steps holds at most max_steps of them.")
    steps: list[int]
    n: list[int] = Field(description="Seeds with a finite value at that step.")
    median: list[Number] = Field(default_factory=list)
    iqm: list[Number] = Field(
        default_factory=list, description="Mean without a quarter of the seeds, rounded down, at either end."
    )
    bootstrap_low: list[Number | None] | None = Field(None, description="Of the mean; null unless asked for.")
    bootstrap_high: list[Number | None] | None = None
    mean: list[Number] = Field(description='Over those seeds, geometric with scale=log; "NaN" where there is none.')
    low: list[Number | None] = Field(
        description="Lower bound of the mean's 95% t interval, with scale=log that of the logarithms; null where n < 2."
    )
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


class ProfileGroupRead(Wire):
    """The norm along the sequence in one layer, over the seeds of one task, cell and depth."""

    task: str
    cell: str
    depth: int
    layer: int = Field(description="Counted from 0, the layer next to the input.")
    statistic: str
    run_ids: list[UUID]
    steps: list[int] = Field(description="The training steps whose profiles count here, one per run.")
    positions: list[int] = Field(description="Places in the sequence; the first is 1.")
    n: list[int] = Field(description="Seeds with a finite value at that place.")
    mean: list[Number] = Field(description="Geometric mean over those seeds.")
    low: list[Number | None] = Field(description="Lower bound of its 95% interval, t of logarithms; null where n < 2.")
    high: list[Number | None]
    non_finite: list[int]


class ProfilesRead(Wire):
    """Norms along the sequence, of several cells side by side."""

    statistic: str
    groups: list[ProfileGroupRead]


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
    bootstrap_low: float | None = Field(None, description="The 95% interval by resampling the seeds; null where n < 2.")
    bootstrap_high: float | None = None


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
    bootstrap_low: float | None = None
    bootstrap_high: float | None = None


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
    bootstrap_low: float | None = None
    bootstrap_high: float | None = None


class OverDepthRead(Wire):
    """How far a cell's final norms lie apart over depths, in ln, by the seeds that have every one of them."""

    task: str
    cell: str
    measure: str
    depths: list[int]
    estimate: float | None
    low: float | None
    high: float | None
    n: int
    bootstrap_low: float | None = None
    bootstrap_high: float | None = None


class CostRead(Wire):
    """What the networks of one task, cell and depth need; several rows where they differ in size."""

    task: str
    cell: str
    depth: int
    parameters: int
    state_size: int
    flops_per_token: int


class StabilityRead(Wire):
    """The stability numbers of the chosen runs that succeeded or diverged."""

    tasks: list[str]
    measures: list[MeasureRead]
    rows: list[StabilityRowRead]
    paired: list[PairedRead]
    claim: ClaimRead
    accuracy: list[AccuracyRead]
    paired_settling: list[PairedRead] = Field(
        default_factory=list, description="The settling step of a cell minus RotRNN's, at equal depth and seed."
    )
    over_depth: list[OverDepthRead] = Field(default_factory=list)
    depth_measure: MeasureRead | None = Field(None, description="What over_depth means.")
    costs: list[CostRead] = Field(default_factory=list)
    warnings: list[str] = Field(description="Runs left out, by name, and groups whose runs differ beside the seed.")
