"""What are Pathfinder and Path-X? Pictures in which two dots lie on one dashed line or on two, a pixel per step.

The release has folders of three difficulties; the benchmark is curv_contour_length_14, in pictures of 32 x 32 or
128 x 128. `metadata/*.npy` are lines of text in spite of their name: folder, file, number, label, and more. The split
is 80/10/10 at random, drawn as the usual readers draw it: torch.randperm with seed 42 over the files in order.

Source: Linsley et al., arXiv:1805.08315; Long Range Arena, arXiv:2011.04006.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from rotrnn_core.tasks.dataset import Scale, Sequences, of_one_length
from rotrnn_core.tasks.documents import check_utf8
from rotrnn_core.tasks.errors import BadData
from rotrnn_core.tasks.lra import ARCHIVE, COLLECTION
from rotrnn_core.tasks.release import Release
from rotrnn_core.tasks.storage import Pieces

DIFFICULTY = "curv_contour_length_14"
SEED = 42
PIECE = 1000
SCALE = Scale(mean=(127.5,), deviation=(127.5,))

Picture = tuple[Path, int]


def read(folder: Path, *, side: int) -> Pieces:
    """The pictures of pathfinder32 or pathfinder128, the folder that holds curv_contour_length_14."""
    import torch  # like png below, not before pictures are read: who looks whether they are here needs neither

    pictures = list(_listed(folder / DIFFICULTY))
    order = torch.randperm(len(pictures), generator=torch.Generator().manual_seed(SEED)).tolist()
    tenth = len(order) // 10
    parts = {
        "train": order[: len(order) - 2 * tenth],
        "validation": order[len(order) - 2 * tenth : len(order) - tenth],
        "test": order[len(order) - tenth :],
    }
    return {split: _pieces([pictures[place] for place in places], side) for split, places in parts.items()}


def _listed(folder: Path) -> Iterator[Picture]:
    """Every picture that the lists name, by number of list and line, with its label."""
    lists = list((folder / "metadata").glob("*.npy"))
    if not lists:
        raise BadData(folder / "metadata", "there are no lists (*.npy)")
    for path in sorted(lists, key=lambda path: (len(path.stem), path.stem)):
        content = path.read_bytes()
        check_utf8(content, path)
        for number, line in enumerate(content.decode().splitlines(), start=1):
            cells = line.split()
            if len(cells) < 4:
                raise BadData(path, f"{len(cells)} columns instead of at least 4", number)
            place, file, _, label = cells[:4]
            if label not in ("0", "1"):
                raise BadData(path, f"the label is {label[:20]!r}, and has to be 0 or 1", number)
            if ".." in Path(place).parts or Path(place).is_absolute() or Path(file).name != file:
                raise BadData(path, f"{place}/{file} leads out of the folder", number)
            yield folder / place / file, int(label)


def _pieces(pictures: Sequence[Picture], side: int) -> Iterator[Sequences]:
    from rotrnn_core.tasks.png import read_gray

    for begin in range(0, len(pictures), PIECE):
        chosen = pictures[begin : begin + PIECE]
        pixels = np.empty((len(chosen), side, side), dtype=np.uint8)
        for place, (path, _) in zip(pixels, chosen, strict=True):
            gray = read_gray(path)
            if gray.shape != (side, side):
                raise BadData(path, f"{gray.shape[1]} x {gray.shape[0]} pixels instead of {side} x {side}")
            place[:] = gray
        labels = np.array([label for _, label in chosen])
        yield of_one_length(pixels.reshape(len(chosen), side * side, 1), labels, SCALE)


def _release(side: int) -> Release:
    return Release(
        protocol=1,
        collection=COLLECTION,
        marker=f"pathfinder{side}/{DIFFICULTY}/metadata",
        read=lambda folder: read(folder / f"pathfinder{side}", side=side),
        wanted=(f"*pathfinder{side}/{DIFFICULTY}/*",),
        most_bytes=8_000_000_000,
        downloads=(ARCHIVE,),
    )


RELEASE, LARGE_RELEASE = _release(32), _release(128)
