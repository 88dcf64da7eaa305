"""What is Digits? scikit-learn's 1,797 handwritten digits of 8 x 8, as sequences of 64 shades of gray.

The pictures come with the library, so that there is real data on any machine. The data seed shuffles them into
splits.

Source: Alpaydin and Kaynak, Optical recognition of handwritten digits, UCI 1998.
"""

import numpy as np

from rotrnn_core.tasks.dataset import Dataset, Scale, Sequences, of_one_length

PROTOCOL = 1
SCALE = Scale(mean=(4.884,), deviation=(6.017,))
"""Mean and standard deviation of all pixels, whose shades are 0 to 16."""


def generate(seed: int, *, train: int, validation: int, test: int) -> Dataset:
    """Shuffle the pictures by the seed: first the test split, then validation, then train."""
    from sklearn.datasets import load_digits  # takes a second, which no other task has to wait for

    pictures, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(labels))
    splits: dict[str, Sequences] = {}
    begin = 0
    for split, size in (("test", test), ("validation", validation), ("train", train)):
        chosen = order[begin : begin + size]
        splits[split] = of_one_length(pictures[chosen].astype(np.uint8)[:, :, None], labels[chosen], SCALE)
        begin += size
    return Dataset(**splits)
