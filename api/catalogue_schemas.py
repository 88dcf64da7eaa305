"""What do tasks, cells, recipes and workers look like on the wire?"""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from api.schemas import Wire


class TaskRead(Wire):
    """A data set that runs can train on."""

    name: str
    title: str
    summary: str
    classes: int
    tokens: int
    longest: int
    train_size: int
    validation_size: int
    test_size: int
    stand_in: bool = Field(description="True: its numbers never stand beside published ones.")


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


class WorkerList(Wire):
    """Every worker, the last seen first."""

    items: list[WorkerRead]
