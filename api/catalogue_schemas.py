"""What do tasks, cells, recipes and workers look like on the wire?"""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from api.schemas import Wire


class PublishedRead(Wire):
    """A test accuracy that others have reported; mark is S (sourced) or U (unverified)."""

    model: str
    accuracy: float | None = Field(description="A share; null where training is reported to fail.")
    standard_error: float | None
    source: str
    mark: str
    note: str


class TaskRead(Wire):
    """A data set that runs can train on, what it takes to beat, and what others have reported."""

    name: str
    title: str
    summary: str
    classes: int
    kind: Literal["tokens", "frames"]
    tokens: int = Field(description="Number of token ids; 0 where the input is frames.")
    channels: int = Field(description="Numbers in a frame; 0 where the input is token ids.")
    documents: int = Field(description="Sequences per example.")
    longest: int
    train_size: int
    validation_size: int
    test_size: int
    stand_in: bool = Field(description="True: its numbers never stand beside published ones.")
    generated: bool = Field(description="True: its examples are drawn from a seed, and need no files.")
    licence: str
    citation: str
    floor_majority: float | None = Field(description="Test accuracy of always saying the commonest class.")
    floor_simple: float | None = Field(description="Test accuracy of a simple method that looks at no order.")
    floor_method: str
    half_rate: bool = Field(description="True: the tested network is tested once more at half the rate.")
    class_names: tuple[str, ...] = Field(description="What each class is; empty where its number says enough.")
    published: list[PublishedRead]


class TaskList(Wire):
    """Every task."""

    items: list[TaskRead]


class OptionRead(Wire):
    """One option of a cell; choices is null for numbers."""

    name: str
    type: str
    default: Any
    choices: list[Any] | None


class ModelRead(Wire):
    """A recurrent cell; labels name its variants, as runs and figures do."""

    name: str
    title: str
    summary: str
    labels: list[str]
    options: list[OptionRead]


class ModelList(Wire):
    """Every cell."""

    items: list[ModelRead]


class RecipeRead(Wire):
    """A complete configuration; mark is S (sourced), D (derived) or U (unverified)."""

    name: str
    title: str
    source: str
    mark: str
    config: dict[str, Any]


class RecipeList(Wire):
    """Every recipe."""

    items: list[RecipeRead]


class WorkerRead(Wire):
    """A worker by its last beat; unknown when that is older than a lease."""

    id: str
    host: str
    device: str
    device_uuid: str | None
    started_at: datetime
    beat_at: datetime
    beat_age_s: float
    state: Literal["idle", "busy", "unknown"]
    run_id: UUID | None
    data: list[str] = Field(description="Tasks whose published data are at hand there; generated ones need none.")
    resident_mib: int | None = Field(
        description="What the worker and its trainer hold, shared pages counted in each; null where it is not known."
    )
    host_total_mib: int | None = Field(description="Memory of its host; null where it is not known.")
    host_available_mib: int | None = Field(description="What its host has to spare; null where it is not known.")


class WorkerList(Wire):
    """Every worker, the last seen first."""

    items: list[WorkerRead]
