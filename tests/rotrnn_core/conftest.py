"""What do the tests of the core share? One small data set on disk, runs of seconds on it, and small releases."""

import gzip
import struct
import wave
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from rotrnn_core.config import RunConfig
from rotrnn_core.layers import Cell

Section = dict[str, object]


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the small data set is made by whoever asks first."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="session")
def small_run() -> Callable[..., RunConfig]:
    """Makes a run of two layers of width 8 and six steps with dropout; keywords update its sections."""

    def make(**changes: Section) -> RunConfig:
        sections: dict[str, Section] = {
            "task": {"train_size": 40, "validation_size": 10, "test_size": 10},
            "model": {"cell": {"name": "rotrnn", "n_heads": 2}, "d_model": 8, "d_state": 8, "dropout": 0.2},
            "training": {
                "steps": 6,
                "batch_size": 4,
                "warmup_steps": 2,
                "log_every": 1,
                "evaluate_every": 3,
                "checkpoint_every": 2,
                "device": "cpu",
            },
            "probe": {"every": 2, "batch_size": 3, "positions": 5},
        }
        for name, section in changes.items():
            sections[name] |= section
        return RunConfig.from_dict(sections)

    return make


@pytest.fixture(scope="session")
def has_gradients_of() -> Callable[..., None]:
    """Holds the gradients of a cell, by every parameter and by its input, against those of outputs found otherwise."""

    def hold(cell: Cell, u: Tensor, outputs: Tensor, *, rtol: float, atol: float) -> None:
        names, parameters = zip(*cell.named_parameters(), strict=True)
        expected = torch.autograd.grad(outputs.square().sum(), [*parameters, u])
        found = torch.autograd.grad(cell(u).square().sum(), [*parameters, u])
        for name, a, b in zip([*names, "u"], found, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=rtol, atol=atol, msg=lambda text, name=name: f"{name}: {text}")

    return hold


def _png(pixels: np.ndarray, kind: int = 0) -> bytes:
    """A gray picture of 8 bits whose rows all bear filter `kind`; only kinds 0 (none) and 2 (up) are made here."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    above = np.vstack([np.zeros((1, pixels.shape[1]), dtype=np.uint8), pixels[:-1]])
    rows = pixels - above if kind == 2 else pixels
    raw = b"".join(bytes([kind]) + row.tobytes() for row in rows)
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


def _wav(path: Path, samples: np.ndarray, rate: int = 16_000) -> None:
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        sound.writeframes(samples.astype("<i2").tobytes())


def _write_listops(root: Path) -> None:
    folder = root / "lra_release/listops-1000"
    folder.mkdir(parents=True)
    tree = "( ( ( [MAX 2 ) ( ( ( [MIN 9 ) 4 ) ] ) ) ] )\t4\n"
    for name in ("train", "val", "test"):
        (folder / f"basic_{name}.tsv").write_text("Source\tTarget\n" + tree + "( ( [SM 9 ) 3 ) ]\t2\n" + "5\t5\n")


def _write_text(root: Path) -> None:
    for split, count in (("train", 10), ("test", 3)):
        for opinion in ("pos", "neg"):
            folder = root / "aclImdb" / split / opinion
            folder.mkdir(parents=True)
            for number in range(count):
                (folder / f"{number}_7.txt").write_text(f"{opinion} {number} h\u00e9llo<br />" * (number * 60 + 1))
    (root / "aclImdb/train/unsup").mkdir()
    (root / "aclImdb/train/unsup/0_0.txt").write_text("no opinion")


def _write_retrieval(root: Path) -> None:
    folder = root / "lra_release/tsv_data"
    folder.mkdir(parents=True)
    for name in ("train", "eval", "test"):
        rows = ['1.0\t7\t8\tan "odd quote\ta second, longer text', "0.0\t9\t3\t" + "x" * 5000 + "\tshort"]
        (folder / f"new_aan_pairs.{name}.tsv").write_text("\n".join(rows) + "\n")


def _write_cifar(root: Path) -> None:
    folder = root / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        records = rng.integers(0, 256, size=(4, 3073), dtype=np.uint8)
        records[:, 0] = rng.integers(0, 10, size=4)
        (folder / f"{name}.bin").write_bytes(records.tobytes())


def _write_pathfinder(root: Path, side: int = 32) -> None:
    folder = root / f"lra_release/lra_release/pathfinder{side}/curv_contour_length_14"
    (folder / "imgs/0").mkdir(parents=True)
    (folder / "metadata").mkdir()
    lines = []
    for number in range(20):
        pixels = np.full((side, side), 10 * number, dtype=np.uint8)
        pixels[0, 0] = number % 2
        (folder / f"imgs/0/sample_{number}.png").write_bytes(_png(pixels, kind=2 * (number % 2)))
        lines.append(f"imgs/0 sample_{number}.png {number} {number % 2} 1.8 2 4 0.5 0.75 1.0\n")
    (folder / "metadata/0.npy").write_text("".join(lines[:12]))
    (folder / "metadata/1.npy").write_text("".join(lines[12:]))


def _write_speech(root: Path, samples: int = 16_000) -> None:
    rng = np.random.default_rng(0)
    names = []
    for word in ("yes", "no", "zero"):
        (root / word).mkdir(parents=True)
        for number in range(8):
            count = samples if number else samples // 2
            _wav(root / word / f"{number:08x}_nohash_0.wav", rng.integers(-3000, 3000, size=count))
            names.append(f"{word}/{number:08x}_nohash_0.wav")
    (root / "_background_noise_").mkdir()
    (root / "validation_list.txt").write_text("".join(f"{name}\n" for name in names[1::8]))
    (root / "testing_list.txt").write_text("".join(f"{name}\n" for name in names[::8]))


def _write_idx(root: Path, *, packed: bool = True) -> None:
    root.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    for name, count in (("train", 24), ("t10k", 6)):
        pictures = rng.integers(0, 256, size=(count, 28, 28), dtype=np.uint8)
        contents = {
            f"{name}-images-idx3-ubyte": struct.pack(">4B3I", 0, 0, 8, 3, count, 28, 28) + pictures.tobytes(),
            f"{name}-labels-idx1-ubyte": struct.pack(">4BI", 0, 0, 8, 1, count) + bytes(i % 10 for i in range(count)),
        }
        for file, content in contents.items():
            path = root / f"{file}{'.gz' if packed else ''}"
            path.write_bytes(gzip.compress(content) if packed else content)


_WRITERS: dict[str, Callable[[Path], None]] = {
    "listops": _write_listops,
    "text": _write_text,
    "retrieval": _write_retrieval,
    "image": _write_cifar,
    "image-colour": _write_cifar,
    "pathfinder": _write_pathfinder,
    "path-x": lambda root: _write_pathfinder(root, 128),
    "speech-commands": _write_speech,
    "sequential-mnist": _write_idx,
    "fashion-mnist": _write_idx,
}


@pytest.fixture(scope="session")
def write_official() -> Callable[[str, Path], Path]:
    """Writes a small release of a task in the shape of the published one, and gives its folder."""

    def make(task: str, root: Path) -> Path:
        _WRITERS[task](root)
        return root

    return make
