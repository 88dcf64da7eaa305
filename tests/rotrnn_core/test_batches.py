"""Is the order of examples fair, repeatable and restorable?"""

from itertools import islice

import numpy as np
import pytest

from rotrnn_core.tasks import Sampler, Sequences, batch_of, batches_in_order


@pytest.fixture
def sequences() -> Sequences:
    """Fifty sequences of lengths 1 to 30; the label of each is its index."""
    lengths = np.random.default_rng(0).integers(1, 31, size=50)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens = np.concatenate([np.arange(3, 3 + length) for length in lengths]).astype(np.uint8)
    return Sequences(tokens, offsets, np.arange(50, dtype=np.uint8))


def labels(sampler: Sampler, count: int) -> list[list[int]]:
    return [batch.labels.tolist() for batch in islice(sampler, count)]


def test_a_batch_is_padded_to_its_own_longest(sequences: Sequences) -> None:
    batch = batch_of(sequences, np.array([4, 7, 9]))
    assert batch.inputs.shape == (3, int(batch.lengths.max()))
    for row, length, index in zip(batch.inputs, batch.lengths, (4, 7, 9), strict=True):
        assert row[:length].tolist() == sequences.sequence(index).tolist()
        assert row[length:].eq(0).all()
    assert batch.labels.tolist() == [4, 7, 9]


def test_an_epoch_shows_every_example_at_most_once(sequences: Sequences) -> None:
    sampler = Sampler(sequences, 8, seed=1)
    seen = [label for batch in labels(sampler, 6) for label in batch]
    assert len(set(seen)) == len(seen) == 48


def test_epochs_and_seeds_differ_and_the_same_seed_repeats(sequences: Sequences) -> None:
    first, again, other = (labels(Sampler(sequences, 8, seed=seed), 12) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert first[:6] != first[6:]


@pytest.mark.parametrize("drawn", [0, 3, 6, 17])
def test_a_sampler_goes_on_from_a_stored_place(sequences: Sequences, drawn: int) -> None:
    whole = labels(Sampler(sequences, 8, seed=3), 25)
    restored = Sampler(sequences, 8, seed=3)
    restored.drawn = drawn
    assert labels(restored, 25 - drawn) == whole[drawn:]


def test_batches_hold_sequences_of_like_length(sequences: Sequences) -> None:
    spread = [int(b.lengths.max() - b.lengths.min()) for b in islice(Sampler(sequences, 5, seed=0), 10)]
    assert np.mean(spread) < 10


def test_a_split_smaller_than_a_batch_is_one_batch(sequences: Sequences) -> None:
    batches = labels(Sampler(sequences, 1000, seed=0), 3)
    assert all(sorted(batch) == list(range(50)) for batch in batches)


def test_evaluation_sees_every_sequence_once_shortest_first(sequences: Sequences) -> None:
    batches = list(batches_in_order(sequences, 7))
    assert sorted(label for batch in batches for label in batch.labels.tolist()) == list(range(50))
    lengths = [length for batch in batches for length in batch.lengths.tolist()]
    assert lengths == sorted(lengths)
