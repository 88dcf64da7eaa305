"""What does a training run say? Typed records, and their line of JSON between processes; needs no torch.

A line holds NaN and infinities as Python's json writes them, so that every float comes back bit for bit.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal, get_args

Split = Literal["validation", "test", "half_rate_test"]
Statistic = Literal["per_head", "whole", "relative"]
STATISTICS: tuple[Statistic, ...] = ("per_head", "whole", "relative")


@dataclass(frozen=True)
class Started:
    """Training begins, or goes on from a checkpoint at `step`."""

    step: int
    total_steps: int
    parameter_count: int
    device: str
    profile_positions: tuple[int, ...]
    environment: dict[str, str]


@dataclass(frozen=True)
class Loss:
    """The training loss of one step, before its update, with what the optimiser did."""

    step: int
    loss: float
    accuracy: float
    learning_rate: float
    recurrence_learning_rate: float
    gradient_norm: float
    tokens_per_s: float

    def metrics(self) -> dict[str, float]:
        """Series name to value."""
        return {
            "train_loss": self.loss,
            "train_accuracy": self.accuracy,
            "learning_rate": self.learning_rate,
            "recurrence_learning_rate": self.recurrence_learning_rate,
            "gradient_norm": self.gradient_norm,
            "tokens_per_s": self.tokens_per_s,
        }


@dataclass(frozen=True)
class Evaluation:
    """Loss and accuracy over a whole split, in evaluation mode, after `step` updates.

    half_rate_test is the test split with every second sample left out, each step standing for two. `chosen_step` says
    which step's network it was, where validation has chosen an earlier one.
    """

    step: int
    split: Split
    loss: float
    accuracy: float
    chosen_step: int | None = None

    def metrics(self) -> dict[str, float]:
        """Series name to value."""
        found = {f"{self.split}_loss": self.loss, f"{self.split}_accuracy": self.accuracy}
        return found if self.chosen_step is None else found | {f"{self.split}_chosen_step": float(self.chosen_step)}


@dataclass(frozen=True)
class Confusion:
    """What the tested network said: counts[c][d] examples of class c of the test split were taken for class d."""

    step: int
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class HiddenNorms:
    """One statistic of the hidden norms of every layer on the probe batch, after `step` updates.

    mean, deviation, minimum, maximum and non_finite have one entry per layer, over (batch, valid time);
    profile is (layers, positions): the mean over the batch at each position in time, in float32's precision.
    """

    step: int
    statistic: Statistic
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    minimum: tuple[float, ...]
    maximum: tuple[float, ...]
    non_finite: tuple[int, ...]
    profile: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint lies complete on disk."""

    step: int
    path: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True)
class CheckpointMissed:
    """A checkpoint could not be written; training goes on, and the one before stays."""

    step: int
    reason: str


@dataclass(frozen=True)
class Divergence:
    """The first value that is not finite; training ends here. `layer` is None outside the blocks."""

    step: int
    layer: int | None
    kind: Literal["activation", "gradient", "parameter"]


@dataclass(frozen=True)
class Finished:
    """All steps are done and the test split was evaluated."""

    step: int


Record = Started | Loss | Evaluation | Confusion | HiddenNorms | Checkpoint | CheckpointMissed | Divergence | Finished
_KINDS: dict[str, type[Record]] = {kind.__name__: kind for kind in get_args(Record)}


def to_line(record: Record) -> str:
    """The record as one line of JSON, without the newline."""
    return json.dumps({"record": type(record).__name__, **vars(record)}, separators=(",", ":"))


def from_line(line: str) -> Record:
    """The record that `to_line` wrote.

    Raises:
        ValueError: The line is not JSON, names no known record, or its fields are not those of that record.
    """
    fields: Any = json.loads(line)
    kind = _KINDS.get(str(fields.pop("record", None))) if isinstance(fields, dict) else None
    if kind is None:
        raise ValueError(f"not a record: {line[:80]!r}")
    for name, value in fields.items():
        if type(value) is list:
            fields[name] = _frozen(value)
    try:
        return kind(**fields)
    except TypeError as error:
        raise ValueError(f"not a {kind.__name__}: {line[:80]!r}") from error


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
