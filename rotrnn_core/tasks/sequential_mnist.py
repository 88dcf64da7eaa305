"""What is Sequential MNIST? Handwritten digits of 28 x 28, a pixel per step, row by row.

Source: LeCun et al., Gradient-based learning applied to document recognition, 1998; sequences of pixels,
arXiv:1504.00941.
"""

from functools import partial

from rotrnn_core.tasks.dataset import Scale
from rotrnn_core.tasks.download import Download
from rotrnn_core.tasks.idx import read_pictures
from rotrnn_core.tasks.release import Release

ADDRESS = "https://ossci-datasets.s3.amazonaws.com/mnist"
SCALE = Scale(mean=(33.3,), deviation=(78.6,))
"""Mean and standard deviation of all training pixels, on the scale 0 to 255."""

RELEASE = Release(
    protocol=1,
    collection="mnist",
    marker="train-images-idx3-ubyte*",
    read=partial(read_pictures, scale=SCALE),
    wanted=("*-ubyte", "*-ubyte.gz"),
    most_bytes=100_000_000,
    downloads=(
        Download(f"{ADDRESS}/train-images-idx3-ubyte.gz", 9_912_422),
        Download(f"{ADDRESS}/train-labels-idx1-ubyte.gz", 28_881),
        Download(f"{ADDRESS}/t10k-images-idx3-ubyte.gz", 1_648_877),
        Download(f"{ADDRESS}/t10k-labels-idx1-ubyte.gz", 4_542),
    ),
)
