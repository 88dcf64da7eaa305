"""Which kinds of value cross the wire? Annotated types that refuse what the database cannot keep or nobody can mean."""

from typing import Annotated

from pydantic import AfterValidator, StringConstraints, WithJsonSchema

from api.catalogue import LABELS
from rotrnn_core.config import TASKS

Number = Annotated[
    float,
    WithJsonSchema(
        {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]},
        mode="serialization",
    ),
]
"""A measured value: a JSON number, or "NaN", "Infinity", "-Infinity"."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
"""A name for people, without control characters."""


def _known_label(label: str) -> str:
    if label not in LABELS:
        raise ValueError(f"known cells are {', '.join(LABELS)}")
    return label


def _known_task(task: str) -> str:
    if task not in TASKS:
        raise ValueError(f"known tasks are {', '.join(sorted(TASKS))}")
    return task


CellLabel = Annotated[str, AfterValidator(_known_label), WithJsonSchema({"type": "string", "enum": list(LABELS)})]
TaskName = Annotated[str, AfterValidator(_known_task), WithJsonSchema({"type": "string", "enum": sorted(TASKS)})]
