"""Does the simple method find what needs no order, and nothing else?"""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from rotrnn_core.catalogue import TASKS
from rotrnn_core.tasks.dataset import Array, Dataset, Sequences, joined, of_one_length
from rotrnn_core.tasks.floors import floors

RNG = np.random.default_rng(0)
TOKENS = dataclasses.replace(TASKS["text"], tokens=5)


def _dataset(make: Callable[[int], Sequences]) -> Dataset:
    return Dataset(make(600), make(200), make(400))


def _by_count(size: int) -> Sequences:
    """Class 1 where token 4 is among the tokens."""
    rows: list[Array] = [
        RNG.integers(1, 4 + number % 2, RNG.integers(5, 20)).astype(np.uint8) for number in range(size)
    ]
    return joined(rows, [int((row == 4).any()) for row in rows])


def _by_order(size: int) -> Sequences:
    """Class 1 where token 1 comes before token 2; both are in every sequence."""
    labels = RNG.integers(0, 2, size).tolist()
    return joined([np.array([1, 2] if label else [2, 1], dtype=np.uint8) for label in labels], labels)


def _alike(size: int) -> Sequences:
    """Pairs of texts; class 1 where both hold the same tokens."""
    labels = RNG.integers(0, 2, size)
    rows: list[Array] = []
    for label in labels:
        one = RNG.choice([[1, 1], [2, 2], [3, 3], [4, 4]]).astype(np.uint8)
        rows += [one, one if label else one % 4 + 1]
    return joined(rows, labels.tolist(), documents=2)


def _tones(size: int) -> Sequences:
    """A class per pitch, at a random place of the wave."""
    labels = RNG.integers(0, 4, size)
    time = np.arange(5_000) / 5_000
    waves = np.sin(2 * np.pi * ((labels[:, None] + 1) * 300 * time + RNG.random((size, 1))))
    return of_one_length((8_000 * waves).astype(np.int16)[:, :, None], labels)


def test_what_counts_alone_decide_is_found_and_order_is_not() -> None:
    assert floors(_dataset(_by_count), TOKENS).simple > 0.9
    assert floors(_dataset(_by_order), TOKENS).simple == pytest.approx(0.5, abs=0.1)


def test_two_documents_are_held_against_each_other() -> None:
    assert floors(_dataset(_alike), dataclasses.replace(TOKENS, documents=2)).simple > 0.95


def test_sound_is_seen_by_its_spectrum_and_the_commonest_class_is_that_of_training() -> None:
    def make(size: int) -> Sequences:
        return _tones(size // 4)

    info = dataclasses.replace(TASKS["speech-commands"], classes=4)
    dataset = _dataset(make)
    found = floors(dataset, info)
    assert found.simple > 0.95
    assert found.method == "ridge regression on the mean log spectrum"
    commonest = np.bincount(dataset.train.labels).argmax()
    assert found.majority == pytest.approx((dataset.test.labels == commonest).mean())
