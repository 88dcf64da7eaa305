"""What do runs, sweeps and what they measured look like on the wire?"""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from api.fields import Name, Number
from rotrnn_core.cost import Match
from store.status import FailureClass, Outcome, Status

PriorityName = Literal["low", "normal", "high"]


class Wire(BaseModel):
    """What every answer keeps to: NaN and infinities go by name, never as null."""

    model_config = ConfigDict(ser_json_inf_nan="strings", from_attributes=True)


class Order(BaseModel):
    """What every request body keeps to: no unknown fields, and no text where true or false is meant."""

    model_config = ConfigDict(extra="forbid", strict=True)


Dedupe = Annotated[
    Literal["reuse", "force"],
    Field(description="reuse: take a run of the same configuration and code that exists; force: start all anew."),
]


class RunCreate(Order):
    """A run to be queued."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "first run",
                    "config": {
                        "task": {"name": "listops-short"},
                        "model": {"cell": {"name": "rotrnn", "n_heads": 4}, "d_model": 32, "d_state": 32},
                        "training": {"steps": 200, "seed": 0},
                    },
                }
            ]
        },
    )

    config: dict[str, Any] = Field(
        description="Any part of a configuration: task, model, training, probe. A field left out takes its default."
    )
    name: Name | None = None
    priority: PriorityName = "normal"
    dedupe: Dedupe = "force"


class Divergence(Wire):
    """The first value that was not finite; layer is null outside the blocks."""

    step: int
    layer: int | None
    kind: str


class RunRead(Wire):
    """A run as it stands."""

    id: UUID
    name: str | None
    sweep_id: UUID | None = Field(description="The sweep that made the run; it may stand in others as well.")
    status: Status
    failure_class: FailureClass | None
    reason: str | None
    config: dict[str, Any] = Field(description="The complete configuration, defaults included.")
    config_hash: str = Field(description="SHA-256 of the configuration's canonical JSON (RFC 8785).")
    cell: str
    task: str
    depth: int
    seed: int
    step: int = Field(description="Completed optimiser updates.")
    total_steps: int
    attempt: int = Field(description="How many times a worker has claimed the run.")
    priority: PriorityName
    created_at: datetime
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    parameter_count: int | None
    state_size: int | None = Field(
        None, description="Real numbers that all layers carry from step to step; 0 for attention."
    )
    flops_per_token: int | None = Field(
        None, description="Multiplications and additions of a forward pass per token, norms and activations apart."
    )
    device: str | None
    divergence: Divergence | None
    stuck: bool | None = Field(
        None,
        description="Whether the last validation loss, after the warm-up and half of the steps, lies within 1% of "
        "ln(classes); null while it is too early to say.",
    )
    below_floor: bool | None = Field(
        None,
        description="Whether the test accuracy lies below the highest floor of the task; null before the test, and "
        "where no floor is known.",
    )
    seconds_left: float | None = Field(
        description="Estimate from the pace of the present attempt; null unless running."
    )
    waits_for: str | None = Field(
        None, description="Why no worker may take a queued run yet, and what mends it; null where one may."
    )
    confusion: list[list[int]] | None = Field(
        None,
        description="How many test examples of each class (row) the tested network took for each class (column); null "
        "in lists, before the test, and with more than 35 classes.",
    )
    latest: dict[str, Number] = Field(
        description="Last value of train_loss, validation_accuracy and test_accuracy, where there is one."
    )


class RunPage(Wire):
    """Runs, newest first."""

    items: list[RunRead]
    next_cursor: str | None


class SweepCreate(Order):
    """A grid of runs over a base configuration."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "cells and depths",
                    "config": {"task": {"name": "listops-short"}, "training": {"steps": 200}},
                    "grid": {
                        "model.cell": [{"name": "rotrnn"}, {"name": "lru", "normaliser": "tied"}],
                        "model.n_layers": [1, 2],
                        "training.seed": [0, 1, 2],
                    },
                    "dry_run": True,
                }
            ]
        },
    )

    config: dict[str, Any] = Field(default_factory=dict, description="What all runs share.")
    grid: dict[str, list[Any]] = Field(
        description="Dotted field to its values; every combination is a run. A value may be an object (model.cell)."
    )
    combinations: list[dict[str, Any]] = Field(
        default_factory=list,
        max_length=10_000,
        description="A list beside the grid: each item gives dotted fields a value each and is crossed with the grid.",
    )
    name: Name | None = None
    dry_run: bool = Field(False, description="Check and count only; nothing is stored.")
    match: Match = Field(
        "d_state",
        description="What all cells have in common with the first cell of the grid. With parameters or flops each cell "
        "gets the d_state that brings its layers nearest, in place of the one given; one that stays more than a "
        "quarter away is refused.",
    )
    dedupe: Dedupe = "force"
    priority: PriorityName = "normal"


class SweepSummary(Wire):
    """A sweep and how far it is."""

    id: UUID
    name: str | None
    created_at: datetime
    config: dict[str, Any] = Field(description="The base configuration, without the fields that the grid sets.")
    grid: dict[str, Any]
    combinations: list[dict[str, Any]] = Field(default_factory=list)
    match: Match = Field("d_state", description="What the cells were given in common; with it a sweep is extended too.")
    total: int
    counts: dict[str, int] = Field(description="Runs by status; a status without runs is left out.")
    reused: int = Field(description="Runs that another submission had made.")
    filled: int = Field(0, description="Cells that hold a result: their runs have succeeded or diverged.")
    seconds_left: float | None = Field(
        None, description="Estimate from the pace of its runs, if as many go on training at once; null if none trains."
    )


class SweepRead(SweepSummary):
    """A sweep with its runs, in the order of the grid."""

    runs: list[UUID]


class SweepPage(Wire):
    """Sweeps, newest first, without their lists of runs."""

    items: list[SweepSummary]
    next_cursor: str | None


class SizeRead(Wire):
    """A network of a sweep and what it costs."""

    cell: str
    task: str
    depth: int
    d_model: int
    d_state: int
    parameters: int
    state_size: int
    flops_per_token: int


class SweepExtend(Order):
    """More seeds for every cell of a sweep."""

    seeds: list[Annotated[int, Field(ge=0, lt=2**53)]] = Field(min_length=1, max_length=1_000)
    dedupe: Dedupe = "force"


class CostEstimate(Wire):
    """What the runs of a sweep that do not exist yet would take."""

    runs: int
    steps: int = Field(description="Updates of all of them.")
    parameters: int = Field(description="Parameters of the largest network.")
    device_seconds: float | None = Field(
        description="On one device, from past runs of equal task, model and batch size; null if none of them has any."
    )
    estimated_runs: int = Field(description="How many of the runs have such past runs; the others are not counted.")


class SweepPlan(Wire):
    """What a sweep would start."""

    cost: CostEstimate

    total: int = Field(description="Distinct runs.")
    configs_preview: list[dict[str, Any]] = Field(description="The first five configurations, complete.")
    duplicates: int = Field(description="Runs that exist already with the same configuration; dedupe=reuse takes them.")
    merged: int = Field(description="Cells of the grid that equal an earlier cell and make no run of their own.")
    sizes: list[SizeRead] = Field(
        default_factory=list, description="The first hundred distinct networks, in the order of the grid."
    )


class MetricSeriesRead(Wire):
    """One metric: each step once, with the attempt that wrote it."""

    key: str
    steps: list[int]
    values: list[Number]
    attempts: list[int]


class MetricsRead(Wire):
    """The metrics of one run."""

    run_id: UUID
    series: list[MetricSeriesRead]


class HiddenNormSeriesRead(Wire):
    """One statistic of a run's hidden norms: per recorded step, one entry per layer."""

    statistic: str
    steps: list[int]
    attempts: list[int]
    mean: list[list[Number]]
    deviation: list[list[Number]]
    minimum: list[list[Number]]
    maximum: list[list[Number]]
    non_finite: list[list[int]]
    profile_steps: list[int] | None = Field(description="Steps whose profile is kept; null unless asked for.")
    profile: list[list[list[Number]]] | None = Field(
        description="(profile steps, layers, positions); null unless asked for."
    )


class HiddenNormsRead(Wire):
    """The hidden norms of one run over (batch, valid time) of its probe batch."""

    run_id: UUID
    layers: int
    profile_positions: list[int]
    series: list[HiddenNormSeriesRead]


class LogLineRead(Wire):
    """One line that a run logged."""

    attempt: int
    sequence: int
    at: datetime
    level: str
    message: str


class LogPage(Wire):
    """Log lines in order."""

    items: list[LogLineRead]
    next_cursor: str | None = Field(description="Give it as `after` to follow the log; null while it is empty.")


class AttemptRead(Wire):
    """One try at a run by one worker."""

    number: int
    worker_id: str
    host: str
    device: str
    started_at: datetime
    ended_at: datetime | None
    outcome: Outcome | None
    failure_class: FailureClass | None
    reason: str | None
    training_started_at: datetime | None = Field(description="When its first step began; null while it prepares.")
    resumed_from_step: int | None = Field(description="0 for a fresh start, null until training has begun.")
    resumed_from_attempt: int | None = Field(description="Whose checkpoint it goes on from; null for a fresh start.")
    environment: dict[str, str] | None


class AttemptList(Wire):
    """Every try, first to last."""

    items: list[AttemptRead]


class EventRead(Wire):
    """One thing that happened to a run, in words."""

    id: int
    at: datetime
    kind: str
    attempt: int
    message: str


class History(Wire):
    """What happened to a run, first to last."""

    items: list[EventRead]
    next_cursor: int | None = Field(description="Give it as `after` to go on; null while nothing has happened.")


class CheckpointRead(Wire):
    """A checkpoint that lay complete in the artifact store when it was recorded."""

    attempt: int
    step: int
    path: str
    sha256: str
    size_bytes: int
    created_at: datetime


class CheckpointList(Wire):
    """Checkpoints, the one furthest in training first."""

    items: list[CheckpointRead]
