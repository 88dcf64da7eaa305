"""What does a simple method reach that looks at no order? Ridge regression on what each sequence holds.

Of token ids it sees how many there are of each; of pictures all pixels, a number each; of longer frames, such as
sound, the mean logarithm of their spectrum in short windows. A network below that has learned nothing of order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from rotrnn_core.catalogue import TaskInfo
from rotrnn_core.tasks.dataset import Array, Dataset, Sequences

MOST_PIXELS = 4096
WINDOW = 256
"""Steps of a window whose spectrum is taken."""
ROWS_AT_ONCE = 500
PENALTIES = (1e-6, 1e-4, 1e-2, 1.0)
"""Tried on the validation split, as shares of the features' mean square."""


@dataclass(frozen=True)
class Floors:
    """Test accuracies that any useful network is above.

    Args:
        majority: Of always saying the training split's commonest class.
        simple: Of ridge regression.
        method: What the regression saw.
    """

    majority: float
    simple: float
    method: str


def floors(dataset: Dataset, info: TaskInfo) -> Floors:
    """Both floors of a data set; nothing is chosen by test accuracy."""
    method, see = _view(dataset.train, info)
    train, validation, test = (_features(part, see) for part in (dataset.train, dataset.validation, dataset.test))
    middle, spread = train.mean(axis=0), train.std(axis=0) + 1e-6
    for part in (train, validation, test):
        part -= middle
        part /= spread
    said = np.eye(info.classes, dtype=np.float32)[dataset.train.labels]
    shares = said.mean(axis=0)
    square, product = train.T @ train, train.T @ (said - shares)
    identity = len(train) * np.eye(len(square), dtype=np.float32)
    tried = [np.linalg.solve(square + penalty * identity, product) for penalty in PENALTIES]
    best = max(tried, key=lambda weights: _accuracy(validation @ weights + shares, dataset.validation))
    commonest = shares.argmax()
    return Floors(
        majority=float((dataset.test.labels == commonest).mean()),
        simple=_accuracy(test @ best + shares, dataset.test),
        method=f"ridge regression on {method}",
    )


def _accuracy(scores: Array, split: Sequences) -> float:
    return float((scores.argmax(axis=1) == split.labels).mean())


def _view(train: Sequences, info: TaskInfo) -> tuple[str, Callable[[Sequences], Array]]:
    """What the regression sees of sequences, in words and as a function to (sequences, features)."""
    if info.kind == "tokens":
        return "the counts of each token", partial(_counts, tokens=info.tokens)
    if train.fixed_length is not None and info.longest * info.channels <= MOST_PIXELS:
        return "pixels", _pixels
    return "the mean log spectrum", _spectrum


def _features(split: Sequences, see: Callable[[Sequences], Array]) -> Array:
    """What is seen of every example, (size, features), a block of examples at a time."""
    blocks = []
    for begin in range(0, len(split), ROWS_AT_ONCE):
        seen = see(split.first(begin + ROWS_AT_ONCE).after(begin)).astype(np.float32)
        if split.documents == 2:
            one, other = seen[0::2], seen[1::2]
            seen = np.concatenate([one + other, np.abs(one - other), np.sqrt(np.maximum(one * other, 0))], axis=1)
        blocks.append(seen)
    return np.concatenate(blocks)


def _counts(split: Sequences, *, tokens: int) -> Array:
    rows = np.repeat(np.arange(len(split.lengths)), split.lengths)
    places = rows * tokens + split.inputs
    return np.sqrt(np.bincount(places, minlength=len(split.lengths) * tokens).reshape(-1, tokens))


def _pixels(split: Sequences) -> Array:
    return split.inputs.reshape(len(split.lengths), -1)


def _spectrum(split: Sequences) -> Array:
    found = []
    for index in range(len(split.lengths)):
        steps = split.sequence(index).astype(np.float32).reshape(split.lengths[index], -1)
        whole = np.zeros((-(-len(steps) // WINDOW) * WINDOW, steps.shape[1]), dtype=np.float32)
        whole[: len(steps)] = steps
        windows = whole.reshape(-1, WINDOW, steps.shape[1]) * np.hanning(WINDOW)[None, :, None]
        found.append(np.log1p(np.abs(np.fft.rfft(windows, axis=1))).mean(axis=0).reshape(-1))
    return np.stack(found)
