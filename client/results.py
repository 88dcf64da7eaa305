"""What does the API answer? The frozen types that the client returns; NaN and infinities are floats here."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

ACTIVE = frozenset({"queued", "running", "paused", "cancelling"})
"""The statuses from which a run still moves by itself or by hand; every other status is an end."""


@dataclass(frozen=True)
class Divergence:
    """The first value that was not finite; layer counts from 0, and is None outside the blocks."""

    step: int
    layer: int | None
    kind: str


@dataclass(frozen=True)
class Run:
    """One training run as it stands; `latest` maps a metric's key to its last value.

    state_size counts real numbers over all layers, flops_per_token multiplications and additions of a forward pass;
    stuck says whether the loss stays at that of a guess, and is None while it is too early to say; waits_for says why
    no worker may take a queued run yet. confusion[c][d] counts test examples of class c that were taken for d; only a
    run that was asked for by its id has it. below_floor says whether a simple method tests better.
    """

    id: str
    name: str | None
    sweep_id: str | None
    status: str
    failure_class: str | None
    reason: str | None
    config: dict[str, Any]
    config_hash: str
    cell: str
    task: str
    depth: int
    seed: int
    step: int
    total_steps: int
    attempt: int
    priority: str
    created_at: datetime
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    parameter_count: int | None
    device: str | None
    divergence: Divergence | None
    seconds_left: float | None
    latest: dict[str, float] = field(default_factory=dict)
    state_size: int | None = None
    flops_per_token: int | None = None
    stuck: bool | None = None
    waits_for: str | None = None
    confusion: tuple[tuple[int, ...], ...] | None = None
    below_floor: bool | None = None

    @property
    def active(self) -> bool:
        """Whether the run has not ended."""
        return self.status in ACTIVE

    @property
    def progress(self) -> float:
        """Share of the steps that are done, in [0, 1]."""
        return min(1.0, self.step / self.total_steps) if self.total_steps else 0.0


@dataclass(frozen=True)
class RunPage:
    """Runs, newest first, and where the next page begins."""

    items: tuple[Run, ...]
    next_cursor: str | None


@dataclass(frozen=True)
class Sweep:
    """A grid of runs; `counts` maps a status to how many runs have it, `reused` counts runs that existed before.

    match names what its cells were given in common: d_state, parameters or flops.
    """

    id: str
    name: str | None
    created_at: datetime
    config: dict[str, Any]
    grid: dict[str, Any]
    total: int
    counts: dict[str, int]
    runs: tuple[str, ...] = ()
    reused: int = 0
    combinations: tuple[dict[str, Any], ...] = ()
    match: str = "d_state"
    filled: int = 0
    seconds_left: float | None = None

    @property
    def done(self) -> int:
        """How many runs have ended."""
        return self.total - sum(self.counts.get(status, 0) for status in ACTIVE)

    @property
    def active(self) -> bool:
        """Whether a run has not ended."""
        return self.done < self.total


@dataclass(frozen=True)
class Purged:
    """What was deleted of runs that ended long ago, or with dry_run would be; `more` says whether further ones wait."""

    dry_run: bool
    runs: int
    more: bool
    points: int
    trace_rows: int
    log_lines: int
    checkpoints: int
    checkpoint_bytes: int

    def plus(self, later: "Purged") -> "Purged":
        """Both together, as it stands after the later one."""
        sums = ("runs", "points", "trace_rows", "log_lines", "checkpoints", "checkpoint_bytes")
        return replace(later, **{name: getattr(self, name) + getattr(later, name) for name in sums})


@dataclass(frozen=True)
class SweepPage:
    """Sweeps, newest first, and where the next page begins."""

    items: tuple[Sweep, ...]
    next_cursor: str | None


@dataclass(frozen=True)
class Size:
    """A network of a sweep and what it costs."""

    cell: str
    task: str
    depth: int
    d_model: int
    d_state: int
    parameters: int
    state_size: int
    flops_per_token: int


@dataclass(frozen=True)
class CostEstimate:
    """What the new runs of a sweep would take; device_seconds is of the estimated_runs alone, None without any."""

    runs: int
    steps: int
    parameters: int
    device_seconds: float | None
    estimated_runs: int


@dataclass(frozen=True)
class SweepPlan:
    """What a sweep would start: its distinct runs, the first configurations, and how many exist already.

    merged counts cells of the grid that equal an earlier cell.
    """

    total: int
    configs_preview: tuple[dict[str, Any], ...]
    duplicates: int = 0
    merged: int = 0
    sizes: tuple[Size, ...] = ()
    cost: CostEstimate | None = None


@dataclass(frozen=True)
class MetricSeries:
    """One metric of one run: each step once, with the attempt that wrote it."""

    key: str
    steps: tuple[int, ...]
    values: tuple[float, ...]
    attempts: tuple[int, ...]


@dataclass(frozen=True)
class HiddenNormSeries:
    """One statistic of a run's hidden norms: per recorded step, one entry per layer.

    profile is (profile steps, layers, positions), for some of the steps; None unless asked for.
    """

    statistic: str
    steps: tuple[int, ...]
    attempts: tuple[int, ...]
    mean: tuple[tuple[float, ...], ...]
    deviation: tuple[tuple[float, ...], ...]
    minimum: tuple[tuple[float, ...], ...]
    maximum: tuple[tuple[float, ...], ...]
    non_finite: tuple[tuple[int, ...], ...]
    profile_steps: tuple[int, ...] | None = None
    profile: tuple[tuple[tuple[float, ...], ...], ...] | None = None


@dataclass(frozen=True)
class HiddenNormTrace:
    """The hidden norms of one run."""

    run_id: str
    layers: int
    profile_positions: tuple[int, ...]
    series: tuple[HiddenNormSeries, ...]


@dataclass(frozen=True)
class LogLine:
    """One line that a run logged."""

    attempt: int
    sequence: int
    at: datetime
    level: str
    message: str


@dataclass(frozen=True)
class LogPage:
    """Log lines in order, and the cursor after the last of them."""

    items: tuple[LogLine, ...]
    next_cursor: str | None


@dataclass(frozen=True)
class Attempt:
    """One try at a run by one worker."""

    number: int
    worker_id: str | None
    host: str | None
    device: str | None
    started_at: datetime
    ended_at: datetime | None
    outcome: str | None
    failure_class: str | None
    reason: str | None
    resumed_from_step: int | None
    environment: dict[str, Any] | None
    training_started_at: datetime | None = None
    resumed_from_attempt: int | None = None


@dataclass(frozen=True)
class Event:
    """One thing that happened to a run, in words."""

    id: int
    at: datetime
    kind: str
    attempt: int
    message: str


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that lies complete in the artifact store."""

    attempt: int
    step: int
    path: str
    sha256: str
    size_bytes: int
    created_at: datetime


@dataclass(frozen=True)
class SingleRun:
    """The curve of one seed inside a group."""

    seed: int
    run_id: str
    status: str
    steps: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class HiddenNormGroup:
    """One statistic of one layer over the seeds of one cell and depth, per recorded step.

    layer counts from 0, next to the input;
    n counts the seeds whose value is finite; low and high bound the 95% t interval of the mean, None where n < 2;
    non_finite counts the seeds left out of that step.
    """

    task: str
    cell: str
    depth: int
    layer: int
    statistic: str
    seeds: tuple[int, ...]
    run_ids: tuple[str, ...]
    steps: tuple[int, ...]
    n: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    minimum: tuple[float, ...]
    maximum: tuple[float, ...]
    non_finite: tuple[int, ...]
    single: tuple[SingleRun, ...] = ()


@dataclass(frozen=True)
class HiddenNormComparison:
    """Hidden norms of several cells side by side; warnings name what is not comparable."""

    statistic: str
    warnings: tuple[str, ...]
    groups: tuple[HiddenNormGroup, ...]


@dataclass(frozen=True)
class ProfileGroup:
    """The norm along the sequence in one layer over the seeds of one cell and depth, at the last kept training step.

    positions are places in the sequence, the first is 1; mean is geometric, low and high bound its 95% interval.
    """

    task: str
    cell: str
    depth: int
    layer: int
    statistic: str
    run_ids: tuple[str, ...]
    steps: tuple[int, ...]
    positions: tuple[int, ...]
    n: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    non_finite: tuple[int, ...]


@dataclass(frozen=True)
class Profiles:
    """Norms along the sequence, of several cells side by side."""

    statistic: str
    groups: tuple[ProfileGroup, ...]


@dataclass(frozen=True)
class Worker:
    """A worker by its last beat; state is idle, busy or unknown; memory is None where it is not known.

    data names the tasks whose published data are at hand there; resident_mib is what the worker and its trainer hold.
    """

    id: str
    host: str
    device: str | None
    device_uuid: str | None
    started_at: datetime
    beat_at: datetime
    beat_age_s: float
    state: str
    run_id: str | None
    data: tuple[str, ...] = ()
    resident_mib: int | None = None
    host_total_mib: int | None = None
    host_available_mib: int | None = None
