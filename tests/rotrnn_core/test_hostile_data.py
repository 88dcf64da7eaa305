"""Does broken or hostile data end in a clear message, with nothing half-written and nothing outside the data folder?"""

import dataclasses
import gzip
import io
import os
import resource
import shutil
import signal
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from rotrnn_core.tasks import BadData, DataMissing, release, storage
from rotrnn_core.tasks.registry import RELEASES

Write = Callable[[str, Path], Path]


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


def refused(name: str, source: Path, data_dir: Path, match: str) -> None:
    """Preparing fails with these words, and leaves nothing but locks."""
    with pytest.raises(DataMissing, match=match):
        release.prepare(name, RELEASES[name], source, data_dir)
    assert not [path for path in data_dir.iterdir() if not path.name.endswith(".lock")]


def packed(path: Path, members: dict[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def test_an_archive_cut_short(tmp_path: Path, data_dir: Path) -> None:
    whole = packed(tmp_path / "whole.tar.gz", {"aclImdb/train/pos/0.txt": os.urandom(200_000)})
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(whole.read_bytes()[:100_000])
    refused("text", cut, data_dir, r"cut\.tar\.gz: the archive is damaged or cut short")


def test_an_archive_that_bears_the_published_name_and_not_its_hash(tmp_path: Path, data_dir: Path) -> None:
    other = packed(tmp_path / "aclImdb_v1.tar.gz", {"aclImdb/train/pos/0.txt": b"good"})
    refused("text", other, data_dir, "its SHA-256 is .*, and the published one is c40f74a1")


@pytest.mark.parametrize("name", ["../outside.txt", "/tmp/rotbench-outside.txt", "a/../../outside.txt"])
def test_a_path_that_leads_out_of_the_folder(tmp_path: Path, data_dir: Path, name: str) -> None:
    refused("text", packed(tmp_path / "a.tar", {name: b"x"}, "w"), data_dir, "leads out of the folder")
    assert not list(tmp_path.glob("**/outside.txt"))
    assert not Path("/tmp/rotbench-outside.txt").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE])
def test_a_link_or_a_device_in_an_archive(tmp_path: Path, data_dir: Path, kind: bytes) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not for them")
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        info = tarfile.TarInfo("aclImdb/train/pos/0.txt")
        info.type, info.linkname = kind, str(secret)
        tar.addfile(info)
    refused("text", tmp_path / "a.tar", data_dir, "is a link or a device, not a file")


def test_a_bomb_is_stopped_at_what_the_data_set_can_have(
    tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RELEASES, "text", dataclasses.replace(RELEASES["text"], most_bytes=3_000_000))
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as file:
        for number in range(5):
            file.writestr(f"aclImdb/train/pos/{number}.txt", bytes(1_000_000))
    assert bomb.stat().st_size < 50_000
    refused("text", bomb, data_dir, "unpacks to more than the 3,000,000 bytes")


def test_what_is_neither_an_archive_nor_the_layout(tmp_path: Path, data_dir: Path) -> None:
    (tmp_path / "page.html").write_text("<html>please log in</html>")
    refused("text", tmp_path / "page.html", data_dir, "neither a folder nor an archive")
    (tmp_path / "empty").mkdir()
    refused("text", tmp_path / "empty", data_dir, "not the official layout: there is no train/pos in it")
    with pytest.raises(DataMissing, match="nowhere does not exist"):
        release.prepare("text", RELEASES["text"], tmp_path / "nowhere", data_dir)


def line_of(path: Path, number: int, old: bytes, new: bytes) -> None:
    lines = path.read_bytes().split(b"\n")
    assert old in lines[number - 1]
    lines[number - 1] = lines[number - 1].replace(old, new)
    path.write_bytes(b"\n".join(lines))


@pytest.mark.parametrize(
    ("name", "file", "number", "old", "new", "match"),
    [
        ("retrieval", "tsv_data/new_aan_pairs.eval.tsv", 2, b"\tshort", b"", "4 columns instead of 5"),
        ("retrieval", "tsv_data/new_aan_pairs.eval.tsv", 1, b"odd", b"o\td", "6 columns instead of 5"),
        ("retrieval", "tsv_data/new_aan_pairs.eval.tsv", 2, b"0.0", b"2.0", "the label is '2.0'"),
        ("retrieval", "tsv_data/new_aan_pairs.test.tsv", 1, b"odd", b"o\xffd", "not UTF-8: .*0xff"),
        ("listops", "listops-1000/basic_val.tsv", 2, b"[MAX", b"[MOX", "MOX' is no word of a tree"),
        ("listops", "listops-1000/basic_val.tsv", 3, b"\t2", b"\t12", "the label is b'12'"),
        ("listops", "listops-1000/basic_val.tsv", 4, b"\t", b" ", "1 column instead of 2"),
        ("listops", "listops-1000/basic_val.tsv", 3, b"9", b"\xc39", "is no word of a tree"),
        ("listops", "listops-1000/basic_val.tsv", 1, b"Source", b"Quelle", "the header is"),
        ("pathfinder", "*/*/*/metadata/1.npy", 3, b" 0 1.8", b" 5 1.8", "the label is '5'"),
        ("pathfinder", "*/*/*/metadata/1.npy", 2, b"imgs/0", b"../../0", "leads out of the folder"),
        ("speech-commands", "testing_list.txt", 2, b"no/", b"on/", "there is no recording 'on/"),
    ],
)
def test_a_bad_line_is_named_by_file_and_number(
    tmp_path: Path,
    data_dir: Path,
    write_official: Write,
    name: str,
    file: str,
    number: int,
    old: bytes,
    new: bytes,
    match: str,
) -> None:
    root = write_official(name, tmp_path / "official")
    (path,) = root.rglob(file)
    line_of(path, number, old, new)
    refused(name, root, data_dir, f"{path.name}:{number}: .*{match}")


@pytest.mark.parametrize(
    ("name", "file", "content", "match"),
    [
        ("text", "**/train/pos/3_7.txt", b"good\nbad \xe9", r"3_7\.txt:2: not UTF-8"),
        ("text", "**/train/pos/3_7.txt", b"", "empty review"),
        ("pathfinder", "**/sample_7.png", b"", r"sample_7\.png: empty picture"),
        ("pathfinder", "**/sample_7.png", b"GIF89a", "not a PNG picture"),
        ("image", "**/data_batch_2.bin", bytes(3072), "cut short"),
        ("image", "**/data_batch_2.bin", bytes([10]) + bytes(3072), "record 1 has label 10"),
        ("speech-commands", "yes/00000003*.wav", b"RIFF", "not a recording, or cut short"),
        (
            "sequential-mnist",
            "train-labels*",
            gzip.compress(struct.pack(">4BI", 0, 0, 8, 1, 24) + bytes(23), mtime=0),
            "holds 23",
        ),
        ("sequential-mnist", "train-labels*", gzip.compress(bytes(100), mtime=0), "not an IDX file"),
        ("sequential-mnist", "train-images*", gzip.compress(bytes(100), mtime=0)[:20], "damaged or cut short"),
        ("fashion-mnist", "train-images*", None, "its MD5 is another"),
    ],
)
def test_a_bad_file_is_named(
    tmp_path: Path, data_dir: Path, write_official: Write, name: str, file: str, content: bytes | None, match: str
) -> None:
    root = write_official(name, tmp_path / "official")
    (path,) = root.glob(file)
    if content is not None:
        path.write_bytes(content)
    refused(name, root, data_dir, match)


def test_a_picture_cut_short(tmp_path: Path, data_dir: Path, write_official: Write) -> None:
    root = write_official("pathfinder", tmp_path / "official")
    (path,) = root.rglob("sample_7.png")
    path.write_bytes(path.read_bytes()[:60])
    refused("pathfinder", root, data_dir, r"sample_7\.png: damaged picture")


@contextmanager
def nobody() -> Iterator[None]:
    """As a user without rights, where the tests run as root."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_may_not_be_read(write_official: Write) -> None:
    place = Path(tempfile.mkdtemp())
    try:
        root = write_official("text", place / "official")
        closed = root / "aclImdb/train/pos/3_7.txt"
        closed.chmod(0)
        (place / "data").mkdir()
        for path in (place, place / "data"):
            path.chmod(0o777)
        with nobody():
            refused("text", root, place / "data", r"3_7\.txt: cannot be read: Permission denied")
    finally:
        shutil.rmtree(place)


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path, data_dir: Path, write_official: Write) -> None:
    root = write_official("image", tmp_path / "official")
    data_dir.mkdir()
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, usual[1]))
        refused(
            "image", root, data_dir, "cannot prepare image-v1 in .*; give a folder that can be written and has room"
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
        signal.signal(signal.SIGXFSZ, handler)


def test_two_at_once_prepare_one_data_set(tmp_path: Path, data_dir: Path, write_official: Write) -> None:
    root = write_official("retrieval", tmp_path / "official")
    with ThreadPoolExecutor(4) as pool:
        made = set(
            pool.map(lambda _: release.prepare("retrieval", RELEASES["retrieval"], root, data_dir).folder, range(4))
        )
    assert len(made) == 1
    assert [path.name for path in data_dir.iterdir() if path.is_dir()] == list(made)


def test_a_byte_changed_on_disk_is_found(tmp_path: Path, data_dir: Path, write_official: Write) -> None:
    root = write_official("retrieval", tmp_path / "official")
    record = release.prepare("retrieval", RELEASES["retrieval"], root, data_dir)
    place = data_dir / record.folder
    assert storage.verify(place) == record.content
    inputs = np.load(place / "test.inputs.npy", mmap_mode="r+")
    inputs[3] ^= 1
    inputs.flush()
    with pytest.raises(BadData, match=r"damaged \(test\.inputs\.npy has SHA-256 .*delete it"):
        storage.verify(place)


def test_a_damaged_record_says_so(tmp_path: Path, data_dir: Path, write_official: Write) -> None:
    release.prepare("retrieval", RELEASES["retrieval"], write_official("retrieval", tmp_path / "official"), data_dir)
    (record,) = data_dir.glob("*.json")
    record.write_text("{")
    with pytest.raises(BadData, match="import or fetch retrieval again"):
        release.load("retrieval", RELEASES["retrieval"], data_dir)
