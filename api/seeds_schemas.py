"""What do metrics, differences and survival over seeds look like on the wire?"""

from uuid import UUID

from pydantic import Field

from api.fields import Number
from api.schemas import Wire


class GroupRead(Wire):
    """The runs of one task, cell and depth, and of equal values of the fields of group_by."""

    task: str
    cell: str
    depth: int
    fields: dict[str, str] = Field(description="Each field's value as canonical JSON.")
    seeds: list[int]
    run_ids: list[UUID]


class MetricGroupRead(GroupRead):
    """A metric over the seeds of a group, per step."""

    recorded_steps: int = Field(description="How many steps were recorded; steps holds at most max_steps of them.")
    steps: list[int]
    n: list[int] = Field(description="Seeds with a finite value at that step; it falls where a seed has ended.")
    non_finite: list[int] = Field(description="Seeds left out of that step because their value is not finite.")
    mean: list[Number] = Field(description='Over the finite values; "NaN" where there is none.')
    median: list[Number]
    iqm: list[Number] = Field(description="Mean without a quarter of the seeds, rounded down, at either end.")
    minimum: list[Number]
    maximum: list[Number]
    low: list[Number | None] = Field(description="Lower bound of the mean's 95% t interval; null where n < 2.")
    high: list[Number | None]
    bootstrap_low: list[Number | None] | None = Field(description="Of the mean; null unless asked for.")
    bootstrap_high: list[Number | None] | None


class MetricComparisonRead(Wire):
    """One metric of several groups side by side."""

    key: str
    warnings: list[str] = Field(description="What makes the runs of a group unequal beside the seed.")
    groups: list[MetricGroupRead]


class DifferenceRead(Wire):
    """The last value of a metric in one cell minus that in the reference, at equal task, depth and seed."""

    task: str
    cell: str
    reference: str
    depth: int
    n: int = Field(description="Seeds that have both.")
    estimate: float | None
    low: float | None = Field(description="Bounds of the mean difference's 95% t interval.")
    high: float | None
    bootstrap_low: float | None
    bootstrap_high: float | None
    effect_size: float | None = Field(description="Mean difference over its standard deviation.")
    p: float | None = Field(description="Of the two-sided paired t test.")
    p_holm: float | None = Field(description="Corrected by Holm over the depths of this task and cell.")


class DifferencesRead(Wire):
    """Paired differences to the reference cell."""

    key: str
    reference: str
    rows: list[DifferenceRead]


class SurvivalGroupRead(GroupRead):
    """The share of a group's runs that have neither diverged nor are stuck, after each step where one was lost."""

    steps: list[int]
    at_risk: list[int] = Field(description="Runs known to be sound before that step.")
    lost: list[int]
    share: list[float] = Field(description="Kaplan and Meier's estimate.")
    low: list[float] = Field(description="Wilson's 95% interval.")
    high: list[float]
    diverged: int
    stuck: int
    training: int = Field(description="Runs that have not ended; they count up to their present step.")


class SurvivalRead(Wire):
    """Survival of several groups side by side."""

    groups: list[SurvivalGroupRead]
