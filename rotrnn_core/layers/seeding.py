"""How do torch's own layers take their initial values from a given generator?"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def drawn_from(generator: torch.Generator | None) -> Iterator[None]:
    """Let layers that are built inside draw from a seed of this generator, and leave torch's own generator untouched.

    Without a generator nothing is changed: the layers draw from torch's own.
    """
    if generator is None:
        yield
        return
    seed = int(torch.randint(2**62, (), generator=generator))
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
