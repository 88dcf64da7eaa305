"""Is every tree a ListOps tree, rightly evaluated, of the right length, distinct, and the same for the same seed?"""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from rotrnn_core.config import TASKS, TaskConfig
from rotrnn_core.tasks import DataMissing, Dataset, Sequences, listops, load
from rotrnn_core.tasks.registry import GENERATED, LENGTHS

SHORT = TaskConfig(name="listops-short", train_size=300, validation_size=20, test_size=20)


def value_of(words: list[str]) -> int:
    """The digit that the words come to, by plain recursion; takes the words away that it has read."""
    word = words.pop(0)
    if word.isdigit():
        return int(word)
    values = []
    while words[0] != "X":
        values.append(value_of(words))
    words.pop(0)
    assert 2 <= len(values) <= 10
    reduce = {"[MIN": min, "[MAX": max, "[SM": lambda v: sum(v) % 10, "[MED": lambda v: int(np.median(v))}
    return int(reduce[word](values))


def words_of(tokens: np.ndarray) -> list[str]:
    return [listops.VOCABULARY[token] for token in tokens]


@pytest.fixture(scope="module")
def short() -> Dataset:
    return listops.generate(LENGTHS["listops-short"], 5, train=1500, validation=50, test=50)


def test_every_label_is_what_the_tree_comes_to(short: Dataset) -> None:
    for sequences in (short.train, short.validation, short.test):
        for index in range(len(sequences)):
            *words, end = words_of(sequences.sequence(index))
            assert end == "<eos>"
            assert value_of(words) == sequences.labels[index]
            assert words == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[MAX 2 9 [MIN 4 7 X 0 X", 9),
        ("[MED 1 2 3 4 X", 2),
        ("[MED 9 1 5 X", 5),
        ("[SM 9 9 [MED 0 9 X X", 2),
        ("[MIN 7 [SM 5 5 X X", 0),
    ],
)
def test_the_yardstick_agrees_with_values_worked_out_by_hand(text: str, value: int) -> None:
    assert value_of(text.split()) == value


@pytest.mark.parametrize("name", sorted(LENGTHS))
def test_lengths_keep_to_the_tasks_bounds(name: str, short: Dataset) -> None:
    lengths = LENGTHS[name]
    drawn = listops.draw(np.random.default_rng(0), 4000, lengths) if name == "listops" else short.train
    trees = drawn.lengths - 1
    assert lengths[0] <= trees.min()
    assert trees.max() <= lengths[-1]
    assert drawn.lengths.max() <= TASKS[name].longest
    assert drawn.inputs.max() < TASKS[name].tokens == len(listops.VOCABULARY)


def test_trees_follow_the_grammar_in_shape_and_share() -> None:
    drawn = listops.draw(np.random.default_rng(1), 40_000, range(1, 10_000))
    lengths = drawn.lengths - 1
    assert abs((lengths == 1).mean() - 0.75) < 0.01
    roots = np.array([drawn.sequence(index)[0] for index in np.flatnonzero(lengths > 1).tolist()])
    shares = np.bincount(roots, minlength=listops.CLOSE)[listops.FIRST_OPERATOR :] / len(roots)
    np.testing.assert_allclose(shares, 0.25, atol=0.02)
    digits = drawn.labels[lengths == 1]
    np.testing.assert_allclose(np.bincount(digits, minlength=10) / len(digits), 0.1, atol=0.01)
    depth = max(deepest(drawn.sequence(index)) for index in np.argsort(lengths)[-50:].tolist())
    assert depth == listops.DEEPEST - 1


def deepest(tokens: np.ndarray) -> int:
    opens = (tokens >= listops.FIRST_OPERATOR) & (tokens < listops.CLOSE)
    return int(np.cumsum(opens.astype(int) - (tokens == listops.CLOSE)).max())


def test_no_tree_comes_twice(short: Dataset) -> None:
    texts = [
        s.sequence(index).tobytes() for s in (short.train, short.validation, short.test) for index in range(len(s))
    ]
    assert len(set(texts)) == len(texts) == 1600


def test_a_larger_train_split_leaves_the_others_as_they_are(short: Dataset) -> None:
    fewer = listops.generate(LENGTHS["listops-short"], 5, train=10, validation=50, test=50)
    assert fewer.test.inputs.tobytes() == short.test.inputs.tobytes()
    assert fewer.validation.inputs.tobytes() == short.validation.inputs.tobytes()
    assert short.train.inputs.tobytes().startswith(fewer.train.inputs.tobytes())


def test_the_protocol_gives_the_same_trees_everywhere() -> None:
    test = listops.generate(LENGTHS["listops-short"], 0, train=1, validation=1, test=200).test
    digest = hashlib.sha256(test.inputs.tobytes() + test.labels.tobytes()).hexdigest()
    assert listops.PROTOCOL == 1
    assert digest == "5c153cfc4c8ba39b7de56d836da407ce18f18f6450eacaf157d55a03bb4c7b0f"


def test_another_seed_gives_other_trees(short: Dataset) -> None:
    other = listops.generate(LENGTHS["listops-short"], 6, train=10, validation=5, test=5)
    assert other.test.inputs.tobytes() != short.test.inputs[: len(other.test.inputs)].tobytes()


def digest_of(sequences: Sequences) -> str:
    return hashlib.sha256(sequences.inputs.tobytes() + sequences.labels.tobytes()).hexdigest()


def test_a_data_set_is_made_once_whoever_asks_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (protocol, generate), made = GENERATED["listops-short"], []

    def counted(*arguments: object, **sizes: int) -> Dataset:
        made.append(1)
        return generate(*arguments, **sizes)

    monkeypatch.setitem(GENERATED, "listops-short", (protocol, counted))
    with ThreadPoolExecutor(4) as pool:
        digests = {digest_of(dataset.train) for dataset in pool.map(lambda _: load(SHORT, tmp_path), range(4))}
    assert len(digests) == len(made) == 1
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 1


def test_a_loaded_data_set_is_a_memory_map(data_dir: Path) -> None:
    assert isinstance(load(SHORT, data_dir).train.inputs, np.memmap)


def test_data_that_cannot_be_written_is_missing(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(DataMissing, match="cannot prepare listops-short"):
        load(SHORT, blocked)


@pytest.mark.parametrize("damage", ["gone", "short", "empty"])
def test_damaged_data_is_missing_and_says_what_to_do(tmp_path: Path, damage: str) -> None:
    load(SHORT, tmp_path)
    (tokens,) = tmp_path.glob("*/train.inputs.npy")
    if damage == "gone":
        tokens.unlink()
    elif damage == "short":
        np.save(tokens, np.zeros(3, dtype=np.uint8))
    else:
        tokens.write_bytes(b"")
    with pytest.raises(DataMissing, match="delete it"):
        load(SHORT, tmp_path)
