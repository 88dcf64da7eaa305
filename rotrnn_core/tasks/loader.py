"""Who assembles the next batches while the device computes? One thread, some batches ahead, in the sampler's order.

Where training goes on from is what was taken, never what lies ready: a restored loader gives the batches that an
uninterrupted one would have given. Threads are enough: rows are copied out of memory maps by code that lets other
threads run, and a batch is there many times sooner than the step that uses it is done.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from rotrnn_core.tasks.batches import Batch, Sampler
from rotrnn_core.tasks.dataset import Sequences

AHEAD = 4
"""Batches that lie ready at most."""


class Loader:
    """The batches of a `Sampler`, assembled ahead of time.

    Args:
        sequences: The training split.
        batch_size: Examples per batch; the whole split where it holds fewer.
        seed: Source of the order.
        pinned: Put batches into memory from which a GPU copies by itself.
    """

    def __init__(self, sequences: Sequences, batch_size: int, seed: int, *, pinned: bool = False) -> None:
        self._sampler = Sampler(sequences, batch_size, seed)
        self._pinned = pinned
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="loader")
        self._ready: deque[Future[Batch]] = deque()
        self._drawn = 0

    @property
    def drawn(self) -> int:
        """Batches taken: the place to go on from."""
        return self._drawn

    @drawn.setter
    def drawn(self, drawn: int) -> None:
        self.close()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="loader")
        self._sampler.drawn = self._drawn = drawn

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        while len(self._ready) <= AHEAD:
            self._ready.append(self._thread.submit(self._assemble))
        batch = self._ready.popleft().result()
        self._drawn += 1
        return batch

    def _assemble(self) -> Batch:
        batch = next(self._sampler)
        return batch.pinned() if self._pinned else batch

    def close(self) -> None:
        """Let the thread end; what lay ready is dropped."""
        self._ready.clear()
        self._thread.shutdown(wait=True, cancel_futures=True)
