"""Where do examples come from? Tasks prepared once on disk, read as memory maps, batched in a restorable order.

What needs torch is imported when it is first asked for: who only looks for data does without.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from rotrnn_core.tasks.dataset import SPLITS, Dataset, Sequences
from rotrnn_core.tasks.errors import BadData, DataMissing
from rotrnn_core.tasks.registry import load, names

if TYPE_CHECKING:
    from rotrnn_core.tasks.batches import Batch, Sampler, batch_of, batches_in_order
    from rotrnn_core.tasks.loader import Loader

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

_BATCHING = {"Loader": "loader"} | dict.fromkeys(("Batch", "Sampler", "batch_of", "batches_in_order"), "batches")


def __getattr__(name: str) -> object:
    if name not in _BATCHING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_BATCHING[name]}"), name)
