"""What does the API answer about stability? Numbers with their intervals, the verdict on the claim, as frozen types."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Interval:
    """How sure a number over n seeds is: its 95% interval and the bootstrap's, None where n is too small to say."""

    low: float | None
    high: float | None
    n: int
    bootstrap_low: float | None = None
    bootstrap_high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Estimate(Interval):
    """A number over seeds, None where n is too small, with its interval."""

    estimate: float | None


@dataclass(frozen=True)
class Measure:
    """What one stability number means."""

    name: str
    title: str
    definition: str
    unit: str


@dataclass(frozen=True)
class StabilityRow(Estimate):
    """One measure of one cell and depth over seeds, with its interval."""

    task: str
    cell: str
    depth: int
    measure: str


@dataclass(frozen=True)
class PairedRow(Interval):
    """A cell minus RotRNN at equal depth and seed; depth None is over all depths."""

    task: str
    cell: str
    depth: int | None
    measure: str
    difference: float | None


@dataclass(frozen=True)
class Finding:
    """Whether a statement is seen in the numbers; None when they do not decide it."""

    seen: bool | None
    text: str


@dataclass(frozen=True)
class Claim:
    """The claim under test, in its two halves, and the verdict as one sentence."""

    rotrnn_constant: Finding
    lru_not_constant: Finding
    sentence: str


@dataclass(frozen=True)
class AccuracyRow(Estimate):
    """Final test accuracy of one cell and depth over seeds, in [0, 1]."""

    task: str
    cell: str
    depth: int


@dataclass(frozen=True)
class OverDepthRow(Estimate):
    """How far a cell's final norms lie apart over depths, by the seeds that have every one of them."""

    task: str
    cell: str
    measure: str
    depths: tuple[int, ...]


@dataclass(frozen=True)
class CostRow:
    """What the networks of one task, cell and depth need; several rows where they differ in size."""

    task: str
    cell: str
    depth: int
    parameters: int
    state_size: int
    flops_per_token: int


@dataclass(frozen=True)
class Stability:
    """The stability numbers of the chosen runs, as the API computed them; warnings name the runs left out."""

    measures: tuple[Measure, ...]
    rows: tuple[StabilityRow, ...]
    paired: tuple[PairedRow, ...]
    claim: Claim
    accuracy: tuple[AccuracyRow, ...]
    warnings: tuple[str, ...] = ()
    paired_settling: tuple[PairedRow, ...] = ()
    over_depth: tuple[OverDepthRow, ...] = ()
    depth_measure: Measure | None = None
    costs: tuple[CostRow, ...] = ()
