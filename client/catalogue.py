"""What can be trained? Tasks with their published figures, cells with their options, and recipes."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PublishedFigure:
    """A test accuracy that others have reported, None where training failed; mark is S (sourced) or U (unverified)."""

    model: str
    accuracy: float | None
    standard_error: float | None
    source: str
    mark: str
    note: str = ""


@dataclass(frozen=True)
class Task:
    """A data set that runs can train on; floors are test accuracies that any useful network is above."""

    name: str
    title: str
    summary: str
    classes: int
    tokens: int
    longest: int
    train_size: int
    validation_size: int
    test_size: int
    stand_in: bool
    kind: str = "tokens"
    channels: int = 0
    documents: int = 1
    generated: bool = False
    licence: str = ""
    citation: str = ""
    floor_majority: float | None = None
    floor_simple: float | None = None
    floor_method: str = ""
    half_rate: bool = False
    class_names: tuple[str, ...] = ()
    published: tuple[PublishedFigure, ...] = ()

    @property
    def floor(self) -> float | None:
        """The highest known floor."""
        return max((f for f in (self.floor_majority, self.floor_simple) if f is not None), default=None)


@dataclass(frozen=True)
class ModelOption:
    """One option of a cell."""

    name: str
    type: str
    default: Any
    choices: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class CellModel:
    """A recurrent cell that runs can use."""

    name: str
    title: str
    summary: str
    labels: tuple[str, ...]
    options: tuple[ModelOption, ...]


@dataclass(frozen=True)
class Recipe:
    """A complete configuration with its source; mark is S (sourced), D (derived) or U (unverified)."""

    name: str
    title: str
    source: str
    mark: str
    config: dict[str, Any]
