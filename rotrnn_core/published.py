"""What have others reported? Published test accuracies with their source; needs no torch.

Marks: "S" sourced, as the source states it; "U" unverified. Whether a figure may stand beside one of ours depends on
protocol: the note says where it may not.
"""

from dataclasses import dataclass
from typing import Literal

__all__ = ["PUBLISHED", "Published", "published"]


@dataclass(frozen=True)
class Published:
    """One reported figure.

    Args:
        task: A task's name here.
        model: As its paper calls it.
        accuracy: Test accuracy as a share; None where training is reported to fail.
        standard_error: Of a mean over seeds; None where none is reported.
        source: Where the figure stands.
        mark: "S" sourced, "U" unverified.
        note: What keeps it from standing beside other figures.
    """

    task: str
    model: str
    accuracy: float | None
    standard_error: float | None
    source: str
    mark: Literal["S", "U"]
    note: str = ""


TASKS = ("listops", "text", "retrieval", "image", "pathfinder", "path-x")
COLOUR = "colour pictures; the gray ones are harder"

Figure = float | tuple[float, float] | None
"""Percent, percent with its standard error, or failed."""


def _row(model: str, source: str, mark: Literal["S", "U"], *percent: Figure) -> list[Published]:
    return [_figure(task, model, source, mark, found) for task, found in zip(TASKS, percent, strict=True)]


def _figure(task: str, model: str, source: str, mark: Literal["S", "U"], percent: Figure, note: str = "") -> Published:
    mean, error = percent if isinstance(percent, tuple) else (percent, None)
    return Published(task, model, _share(mean), _share(error), source, mark, note)


def _share(percent: float | None) -> float | None:
    return None if percent is None else round(percent / 100, 6)


def _lru() -> list[Published]:
    source = "LRU, arXiv:2303.06349, tables 3 and 8"
    rows = _row("LRU", source, "S", (60.2, 0.8), (89.4, 0.1), (89.9, 0.1), (89.0, 0.1), (95.1, 0.1), (94.2, 0.4))
    coloured = _figure("image-colour", "LRU", source, "S", (89.0, 0.1), COLOUR)
    return [coloured if row.task == "image" else row for row in rows]


PUBLISHED: tuple[Published, ...] = (
    *_row("RotRNN", "RotRNN, arXiv:2407.07239", "U", 61.1, 89.6, 89.9, 85.9, 93.0, 89.2),
    *_lru(),
    *_row("S5", "S5, arXiv:2208.04933", "S", 62.15, 89.31, 91.40, 88.00, 95.33, 98.58),
    *_row("S4", "S4, arXiv:2111.00396, revised", "S", 59.60, 86.82, 90.90, 88.65, 94.20, 96.35),
    *_row("Mega", "Mega, arXiv:2209.10655", "S", 63.14, 90.43, 91.25, 90.44, 96.01, 97.98),
    *_row("Transformer", "Long Range Arena, arXiv:2011.04006", "S", 36.37, 64.27, 57.46, 42.44, 71.40, None),
    _figure("speech-commands", "RotRNN", "RotRNN, arXiv:2407.07239", "S", 95.2),
    _figure("speech-commands", "LRU", "as reproduced in RotRNN, arXiv:2407.07239", "S", 95.2),
    _figure("speech-commands", "S5", "S5, arXiv:2208.04933", "S", 96.52),
    _figure("speech-commands", "Liquid-S4", "Liquid-S4, arXiv:2209.12951", "S", 96.78),
)
"""Every figure, best known models of each task."""


def published(task: str) -> tuple[Published, ...]:
    """The figures of one task, the highest first, failures last."""
    rows = [row for row in PUBLISHED if row.task == task]
    return tuple(sorted(rows, key=lambda row: -1.0 if row.accuracy is None else row.accuracy, reverse=True))
