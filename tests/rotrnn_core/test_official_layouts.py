"""Is every published data set read as it is published, from a folder or from its archive?"""

import dataclasses
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rotrnn_core import tasks
from rotrnn_core.catalogue import TASKS
from rotrnn_core.config import TaskConfig
from rotrnn_core.tasks import Dataset, fashion_mnist, idx, listops, png, release, retrieval, storage
from rotrnn_core.tasks.registry import GENERATED, RELEASES

Write = Callable[[str, Path], Path]
SIZES = {
    "listops": (3, 3, 3),
    "text": (18, 2, 6),
    "retrieval": (2, 2, 2),
    "image": (18, 2, 4),
    "image-colour": (18, 2, 4),
    "pathfinder": (16, 2, 2),
    "path-x": (16, 2, 2),
    "speech-commands": (18, 3, 3),
    "sequential-mnist": (22, 2, 6),
    "fashion-mnist": (22, 2, 6),
}


@pytest.fixture(autouse=True)
def _own_clothes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The small files are not the published ones, and no package's files count."""
    made = dataclasses.replace(
        fashion_mnist.RELEASE, read=lambda folder: idx.read_pictures(folder, fashion_mnist.SCALE), installed=()
    )
    monkeypatch.setitem(RELEASES, "fashion-mnist", made)


def prepared(name: str, source: Path, data_dir: Path) -> Dataset:
    record = release.prepare(name, RELEASES[name], source, data_dir)
    return storage.read(data_dir / record.folder)


def test_every_task_has_data_and_every_data_set_a_task() -> None:
    assert set(tasks.names()) == set(TASKS) == set(GENERATED) | set(RELEASES)
    assert set(SIZES) == set(RELEASES)


@pytest.mark.parametrize("name", sorted(SIZES))
def test_a_folder_of_the_published_layout_becomes_a_data_set(name: str, tmp_path: Path, write_official: Write) -> None:
    dataset = prepared(name, write_official(name, tmp_path / "official"), tmp_path / "data")
    splits = (dataset.train, dataset.validation, dataset.test)
    assert tuple(map(len, splits)) == SIZES[name]
    info = TASKS[name]
    for split in splits:
        assert split.documents == info.documents
        assert split.labels.max() < info.classes
        assert split.lengths.max() <= info.longest
        assert split.lengths.min() >= 1
        batch = tasks.batch_of(split, np.arange(2))
        if info.kind == "tokens":
            assert batch.inputs.max() < info.tokens
        else:
            assert batch.inputs.shape[1:] == (info.longest, info.channels)
            assert batch.inputs.abs().max() < 20


def test_an_archive_gives_what_its_folder_gives(tmp_path: Path, write_official: Write) -> None:
    folder = write_official("text", tmp_path / "official")
    archive = tmp_path / "copy.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder / "aclImdb", "aclImdb")
    from_folder = release.prepare("text", RELEASES["text"], folder, tmp_path / "one")
    from_archive = release.prepare("text", RELEASES["text"], archive, tmp_path / "two")
    assert from_archive.content == from_folder.content
    assert from_archive.archives.keys() == {"copy.tar.gz"}
    left = {path.name for path in (tmp_path / "two").iterdir() if not path.name.endswith(".lock")}
    assert left == {from_archive.folder, "text-v1-f2.json"}


def test_a_run_loads_what_was_prepared_and_is_told_where_there_is_too_little(
    tmp_path: Path, write_official: Write
) -> None:
    prepared("text", write_official("text", tmp_path / "official"), tmp_path / "data")
    shutil.rmtree(tmp_path / "official")
    wanted = TaskConfig(name="text", train_size=5, validation_size=2, test_size=6)
    assert len(tasks.load(wanted, tmp_path / "data").train) == 5
    with pytest.raises(tasks.DataMissing, match="holds 18 examples and the run wants 22,500"):
        tasks.load(TaskConfig(name="text"), tmp_path / "data")


def test_missing_data_say_which_command_brings_them(tmp_path: Path) -> None:
    with pytest.raises(tasks.DataMissing, match=f"rotbench data fetch text --data-dir {tmp_path}"):
        tasks.load(TaskConfig(name="text"), tmp_path)


def test_released_trees_have_the_ids_and_values_of_drawn_ones(tmp_path: Path, write_official: Write) -> None:
    data_dir = tmp_path / "data"
    prepared("listops", write_official("listops", tmp_path / "official"), data_dir)
    wanted = TaskConfig(name="listops", release=True, train_size=3, validation_size=3, test_size=3)
    train = tasks.load(wanted, data_dir).train
    words = [" ".join(listops.VOCABULARY[token] for token in train.sequence(index)) for index in range(3)]
    assert words == ["[MAX 2 [MIN 9 4 X X <eos>", "[SM 9 3 X <eos>", "5 <eos>"]
    assert train.labels.tolist() == [4, 2, 5]


def test_long_trees_are_cut_and_windows_line_ends_and_a_missing_last_one_do_not_matter(tmp_path: Path) -> None:
    from rotrnn_core.tasks.listops_release import trees

    path = tmp_path / "basic_train.tsv"
    path.write_bytes(b"Source\tTarget\r\n( [MAX " + b"1 " * 3000 + b"]\t1\r\n( [MED 3 4 ]\t3")
    pieces = list(trees(path))
    assert [length for piece in pieces for length in piece.lengths] == [2048, 5]
    assert [label for piece in pieces for label in piece.labels] == [1, 3]


def test_reviews_are_bytes_with_their_opinion_and_the_held_out_part_is_fixed(
    tmp_path: Path, write_official: Write
) -> None:
    dataset = prepared("text", write_official("text", tmp_path / "official"), tmp_path / "data")
    for split in (dataset.train, dataset.validation, dataset.test):
        for index, label in enumerate(split.labels):
            text = (split.sequence(index) - 1).tobytes()
            assert text.startswith(b"pos" if label else b"neg")
            assert len(text) <= 4096
    assert dataset.train.lengths.max() == 4096
    assert set(dataset.train.labels) == {0, 1}


def test_a_quote_in_a_pair_is_a_letter_and_long_documents_are_cut(tmp_path: Path, write_official: Write) -> None:
    train = prepared("retrieval", write_official("retrieval", tmp_path / "official"), tmp_path / "data").train
    texts = [(train.sequence(index) - 1).tobytes() for index in range(4)]
    assert texts[0] == b'an "odd quote'
    assert texts[1] == b"a second, longer text"
    assert (len(texts[2]), texts[3]) == (retrieval.LONGEST, b"short")
    assert train.labels.tolist() == [1, 0]


def test_gray_is_luma_and_colour_keeps_all_three(tmp_path: Path, write_official: Write) -> None:
    official = write_official("image", tmp_path / "official")
    raw = np.fromfile(official / "cifar-10-batches-bin/data_batch_1.bin", dtype=np.uint8).reshape(-1, 3073)
    red, green, blue = (raw[0, 1 + 1024 * c : 1 + 1024 * (c + 1)].astype(float) for c in range(3))
    gray = prepared("image", official, tmp_path / "data").train
    colour = prepared("image-colour", official, tmp_path / "data").train
    assert np.abs(gray.sequence(0)[:, 0] - (0.299 * red + 0.587 * green + 0.114 * blue)).max() <= 0.51
    np.testing.assert_array_equal(colour.sequence(0), np.stack([red, green, blue], axis=1))
    assert gray.labels[0] == colour.labels[0] == raw[0, 0]


def test_pictures_of_dots_keep_their_label_through_the_random_split(tmp_path: Path, write_official: Write) -> None:
    dataset = prepared("pathfinder", write_official("pathfinder", tmp_path / "official"), tmp_path / "data")
    shades = []
    for split in (dataset.train, dataset.validation, dataset.test):
        for index, label in enumerate(split.labels):
            assert split.sequence(index)[0, 0] == label
            shades.append(int(split.sequence(index)[1, 0]))
    assert sorted(shades) == [10 * number for number in range(20)]


def test_recordings_follow_the_lists_are_padded_and_standardised(tmp_path: Path, write_official: Write) -> None:
    dataset = prepared("speech-commands", write_official("speech-commands", tmp_path / "official"), tmp_path / "data")
    assert (dataset.test.sequence(0)[8000:] == 0).all()
    assert (dataset.test.sequence(0)[:8000] != 0).any()
    inputs = tasks.batch_of(dataset.train, np.arange(18)).inputs
    assert abs(float(inputs.mean())) < 1e-3
    assert abs(float(inputs.std()) - 1) < 1e-3
    assert len(set(dataset.train.labels)) == 3


def paeth(left: int, up: int, corner: int) -> int:
    base = left + up - corner
    return min((left, up, corner), key=lambda value: abs(base - value))


@pytest.mark.parametrize("kind", range(5))
def test_every_filter_of_a_picture_is_undone(kind: int) -> None:
    rng = np.random.default_rng(kind)
    wanted = rng.integers(0, 256, size=(5, 6), dtype=np.uint8)
    rows = np.zeros((5, 7), dtype=np.uint8)
    rows[:, 0] = kind
    for y in range(5):
        for x in range(6):
            left = int(wanted[y, x - 1]) if x else 0
            up = int(wanted[y - 1, x]) if y else 0
            corner = int(wanted[y - 1, x - 1]) if x and y else 0
            guess = (0, left, up, (left + up) // 2, paeth(left, up, corner))[kind]
            rows[y, x + 1] = (int(wanted[y, x]) - guess) % 256
    png._unfilter(rows, 1)
    np.testing.assert_array_equal(rows[:, 1:], wanted)
