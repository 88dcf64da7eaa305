"""What is Fashion-MNIST? Articles of clothing in pictures of 28 x 28, a pixel per step, row by row.

Debian's package dataset-fashion-mnist holds the published files, so that there is a real benchmark wherever packages
can be had.

Source: Xiao et al., arXiv:1708.07747.
"""

from pathlib import Path

from rotrnn_core.tasks.dataset import Scale
from rotrnn_core.tasks.download import Download
from rotrnn_core.tasks.idx import read_pictures
from rotrnn_core.tasks.release import Release
from rotrnn_core.tasks.storage import Pieces

DEBIAN = Path("/usr/share/datasets/fashion-mnist")
ADDRESS = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
SCALE = Scale(mean=(72.9,), deviation=(90.0,))
"""Mean and standard deviation of all training pixels, on the scale 0 to 255."""
MD5 = {
    "train-images-idx3-ubyte": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
    "train-labels-idx1-ubyte": "9018921c3c673c538a1fc5bad174d6f9",
    "t10k-images-idx3-ubyte": "8181f5470baa50b63fa0f6fddb340f0a",
    "t10k-labels-idx1-ubyte": "15d484375f8d13e6eb1aabb0c3f46965",
}
"""Hashes of the published files, unpacked."""


def read(folder: Path) -> Pieces:
    """The published files, held against their hashes."""
    return read_pictures(folder, SCALE, MD5)


RELEASE = Release(
    protocol=1,
    collection="fashion-mnist",
    marker="train-images-idx3-ubyte*",
    read=read,
    wanted=("*-ubyte", "*-ubyte.gz"),
    most_bytes=100_000_000,
    downloads=(
        Download(f"{ADDRESS}/train-images-idx3-ubyte.gz", 26_421_880),
        Download(f"{ADDRESS}/train-labels-idx1-ubyte.gz", 29_515),
        Download(f"{ADDRESS}/t10k-images-idx3-ubyte.gz", 4_422_102),
        Download(f"{ADDRESS}/t10k-labels-idx1-ubyte.gz", 5_148),
    ),
    installed=(DEBIAN,),
)
