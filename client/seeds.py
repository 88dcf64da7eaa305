"""What does the API answer about many seeds? Metrics per step, survival, and paired differences, as frozen types."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class MetricGroup:
    """One metric over the seeds of one task, cell, depth and further fields, per step.

    fields holds each field's value as canonical JSON; low and high bound the 95% t interval of the mean, None where
    n < 2; non_finite counts the seeds left out of that step.
    """

    task: str
    cell: str
    depth: int
    seeds: tuple[int, ...]
    run_ids: tuple[str, ...]
    steps: tuple[int, ...]
    n: tuple[int, ...]
    non_finite: tuple[int, ...]
    mean: tuple[float, ...]
    median: tuple[float, ...]
    iqm: tuple[float, ...]
    minimum: tuple[float, ...]
    maximum: tuple[float, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    recorded_steps: int = 0
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MetricComparison:
    """One metric of several groups side by side; warnings name what is not comparable."""

    key: str
    warnings: tuple[str, ...]
    groups: tuple[MetricGroup, ...]


@dataclass(frozen=True)
class SurvivalGroup:
    """The share of a group's runs that are neither diverged nor stuck, after each step where one was lost.

    share is Kaplan and Meier's estimate, low and high Wilson's 95% interval; training counts runs that have not ended.
    """

    task: str
    cell: str
    depth: int
    seeds: tuple[int, ...]
    run_ids: tuple[str, ...]
    steps: tuple[int, ...]
    at_risk: tuple[int, ...]
    lost: tuple[int, ...]
    share: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    diverged: int
    stuck: int
    training: int
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Difference:
    """The last value of a metric in one cell minus that in the reference, at equal task, depth and seed.

    effect_size is the mean difference over its standard deviation; p_holm is corrected over the depths of that cell.
    """

    task: str
    cell: str
    reference: str
    depth: int
    n: int
    estimate: float | None
    low: float | None
    high: float | None
    effect_size: float | None
    p: float | None
    p_holm: float | None
