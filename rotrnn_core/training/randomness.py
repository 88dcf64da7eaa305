"""Where does chance enter a run? One independent stream per purpose, all from the run's seed."""

from enum import IntEnum

import numpy as np
import torch


class Stream(IntEnum):
    """The purposes for which a run draws numbers."""

    PARAMETERS = 0
    ORDER = 1
    DROPOUT = 2
    CALIBRATION = 3


def seed_of(seed: int, stream: Stream) -> int:
    """The seed of one stream, in [0, 2^63)."""
    return int(np.random.SeedSequence([seed, stream]).generate_state(1, np.uint64)[0] >> 1)


def generator_of(seed: int, stream: Stream, device: torch.device) -> torch.Generator:
    """A torch generator for one stream."""
    return torch.Generator(device).manual_seed(seed_of(seed, stream))
