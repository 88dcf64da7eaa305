"""What is Text? Film reviews as bytes, cut at 4096: is the opinion good?

The release has a train and a test split, of good and bad reviews in a folder each. Long Range Arena validates on the
test split; here a tenth of the train split is held out instead, drawn once and for all.

Source: Maas et al., Learning word vectors for sentiment analysis, ACL 2011; Long Range Arena, arXiv:2011.04006.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from rotrnn_core.tasks.dataset import Sequences, joined
from rotrnn_core.tasks.documents import check_utf8, encode
from rotrnn_core.tasks.download import Download
from rotrnn_core.tasks.errors import BadData
from rotrnn_core.tasks.release import Release
from rotrnn_core.tasks.storage import Pieces

LONGEST = 4096
HELD_OUT = 10
"""One in so many training reviews is for validation."""
SEED = 42
PIECE = 500
OPINIONS = ("neg", "pos")

Review = tuple[Path, int]


def read(folder: Path) -> Pieces:
    """Reviews from `train` and `test`, each with folders `neg` and `pos`, in an order drawn once and for all."""
    train = _shuffled(folder / "train")
    held_out = len(train) // HELD_OUT
    return {
        "train": _pieces(train[held_out:]),
        "validation": _pieces(train[:held_out]),
        "test": _pieces(_shuffled(folder / "test")),
    }


def _shuffled(folder: Path) -> list[Review]:
    found = [(path, label) for label, name in enumerate(OPINIONS) for path in sorted((folder / name).glob("*.txt"))]
    if len({label for _, label in found}) < len(OPINIONS):
        raise BadData(folder, "there are no reviews (*.txt) in neg or in pos")
    return [found[place] for place in np.random.default_rng(SEED).permutation(len(found))]


def _pieces(reviews: Sequence[Review]) -> Iterator[Sequences]:
    for begin in range(0, len(reviews), PIECE):
        rows, labels = [], []
        for path, label in reviews[begin : begin + PIECE]:
            text = path.read_bytes()
            if not text:
                raise BadData(path, "empty review")
            check_utf8(text, path)
            rows.append(encode(text, LONGEST))
            labels.append(label)
        yield joined(rows, labels)


RELEASE = Release(
    protocol=1,
    collection="imdb",
    marker="train/pos",
    read=read,
    wanted=("*train/pos/*.txt", "*train/neg/*.txt", "*test/pos/*.txt", "*test/neg/*.txt"),
    most_bytes=200_000_000,
    downloads=(
        Download(
            "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
            84_125_825,
            "c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
        ),
    ),
)
