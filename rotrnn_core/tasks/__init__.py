"""Where do examples come from? Tasks prepared once on disk, read as memory maps, batched in a restorable order."""

from rotrnn_core.tasks.batches import Batch, Sampler, batch_of, batches_in_order
from rotrnn_core.tasks.dataset import SPLITS, Dataset, Sequences
from rotrnn_core.tasks.errors import BadData, DataMissing
from rotrnn_core.tasks.loader import Loader
from rotrnn_core.tasks.registry import load, names

__all__ = [
    "SPLITS",
    "BadData",
    "Batch",
    "DataMissing",
    "Dataset",
    "Loader",
    "Sampler",
    "Sequences",
    "batch_of",
    "batches_in_order",
    "load",
    "names",
]
