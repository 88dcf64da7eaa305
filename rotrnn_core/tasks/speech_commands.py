"""What is Speech Commands 35? Spoken words at 16 kHz, one second each, to be told apart.

The release has a folder of recordings per word; validation_list.txt and testing_list.txt name those of two splits,
all others are for training. Shorter recordings are padded with silence to 16,000 samples. Samples are standardised by
the mean and deviation of the train split.

Source: Warden, Speech Commands, arXiv:1804.03209, version 0.02.
"""

import wave
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from rotrnn_core.catalogue import WORDS
from rotrnn_core.tasks.dataset import MEASURED, Array, Sequences, of_one_length
from rotrnn_core.tasks.documents import check_utf8
from rotrnn_core.tasks.download import Download
from rotrnn_core.tasks.errors import BadData
from rotrnn_core.tasks.release import Release
from rotrnn_core.tasks.storage import Pieces

RATE = 16_000
SAMPLES = 16_000
SEED = 42
PIECE = 500
LISTS = {"validation": "validation_list.txt", "test": "testing_list.txt"}


def read(folder: Path) -> Pieces:
    """Recordings from the 35 folders of words; the train split in an order drawn once and for all."""
    found = {
        f"{path.parent.name}/{path.name}": path for word in WORDS for path in sorted((folder / word).glob("*.wav"))
    }
    listed = {split: _names(folder / name, found) for split, name in LISTS.items()}
    taken = set(listed["validation"]) | set(listed["test"])
    train = [name for name in found if name not in taken]
    if len(taken) < len(listed["validation"]) + len(listed["test"]) or not train:
        raise BadData(folder, "the lists name a recording twice, or leave none to train on")
    order = np.random.default_rng(SEED).permutation(len(train))
    names = {"train": [train[place] for place in order], **listed}
    return {split: _pieces([found[name] for name in names[split]]) for split in ("train", "validation", "test")}


def _names(path: Path, found: dict[str, Path]) -> list[str]:
    """The recordings of a list, each of which has to be there: a list read wrongly would put all into one split."""
    content = path.read_bytes()
    check_utf8(content, path)
    names = []
    for number, line in enumerate(content.decode().splitlines(), start=1):
        name = line.strip()
        if name not in found:
            raise BadData(path, f"there is no recording {name[:80]!r} of one of the 35 words", number)
        names.append(name)
    if not names:
        raise BadData(path, "an empty list")
    return names


def _pieces(paths: Sequence[Path]) -> Iterator[Sequences]:
    for begin in range(0, len(paths), PIECE):
        chosen = paths[begin : begin + PIECE]
        samples = np.zeros((len(chosen), SAMPLES, 1), dtype=np.int16)
        for place, path in zip(samples, chosen, strict=True):
            heard = _recording(path)[:SAMPLES]
            place[: len(heard), 0] = heard
        yield of_one_length(samples, np.array([WORDS.index(path.parent.name) for path in chosen]), MEASURED)


def _recording(path: Path) -> Array:
    try:
        with path.open("rb") as file, wave.open(file) as sound:
            kind = (sound.getnchannels(), sound.getsampwidth(), sound.getframerate())
            content = sound.readframes(SAMPLES)
    except (wave.Error, EOFError) as error:
        raise BadData(path, f"not a recording, or cut short ({error})") from error
    if kind != (1, 2, RATE):
        raise BadData(path, f"{kind[0]} channels of {8 * kind[1]} bits at {kind[2]} Hz instead of 1 of 16 at {RATE}")
    if not content:
        raise BadData(path, "an empty recording")
    return np.frombuffer(content, dtype="<i2")


RELEASE = Release(
    protocol=1,
    collection="speech-commands",
    marker="validation_list.txt",
    read=read,
    wanted=("*.wav", "*_list.txt"),
    most_bytes=5_000_000_000,
    downloads=(
        Download(
            "https://storage.googleapis.com/download.tensorflow.org/data/speech_commands_v0.02.tar.gz",
            2_428_923_189,
            "af14739ee7dc311471de98f5f9d2c9191b18aedfe957f4a6ff791c709868ff58",
        ),
    ),
)
