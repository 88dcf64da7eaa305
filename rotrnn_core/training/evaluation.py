"""How good is the network on a whole split, and what does it take for what?"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional

from rotrnn_core.model import Network
from rotrnn_core.records import Confusion, Evaluation, Split
from rotrnn_core.tasks import Sequences, batches_in_order

MOST_CLASSES = 35
"""With more classes nobody reads who is taken for whom."""


@dataclass(frozen=True)
class Tally:
    """What came out over every sequence of a split.

    Args:
        loss: Mean cross-entropy.
        counts: counts[c][d] examples of class c were taken for class d.
    """

    loss: float
    counts: tuple[tuple[int, ...], ...]

    @property
    def accuracy(self) -> float:
        """The share of examples taken for what they are."""
        return sum(row[place] for place, row in enumerate(self.counts)) / sum(map(sum, self.counts))

    def evaluation(self, split: Split, step: int, chosen_step: int | None = None) -> Evaluation:
        """The record of loss and accuracy."""
        return Evaluation(step, split, self.loss, self.accuracy, chosen_step)

    def confusion(self, step: int) -> list[Confusion]:
        """The record of what was taken for what; none where there are more than MOST_CLASSES."""
        return [Confusion(step, self.counts)] if len(self.counts) <= MOST_CLASSES else []


@torch.no_grad()
def tally(
    network: Network,
    sequences: Sequences,
    *,
    batch_size: int,
    device: torch.device,
    every: int = 1,
    working: Callable[[], None] = lambda: None,
) -> Tally:
    """Classify every sequence of a split once, in evaluation mode.

    Args:
        network: Of any mode; its mode is as it was afterwards.
        sequences: The split.
        batch_size: Examples at once.
        device: Where the network is.
        every: Only every so many-th step of each sequence is read, the first among them.
        working: Called after each batch: a large split takes longer than a step ever does.
    """
    was_training = network.training
    network.eval()
    loss = torch.zeros((), dtype=torch.float64, device=device)
    counts = torch.zeros(0, dtype=torch.int64, device=device)
    for batch in batches_in_order(sequences, batch_size):
        batch = batch.to(device)
        cuts = None if batch.cuts is None else (batch.cuts + every - 1) // every
        logits = network(batch.inputs[:, ::every], cuts)
        classes = logits.shape[-1]
        counts = counts if len(counts) else counts.new_zeros(classes * classes)
        loss += functional.cross_entropy(logits.double(), batch.labels, reduction="sum")
        counts.index_add_(0, batch.labels * classes + logits.argmax(-1), torch.ones_like(batch.labels))
        working()
    network.train(was_training)
    rows = counts.view(classes, classes).tolist()
    return Tally(loss.item() / len(sequences), tuple(map(tuple, rows)))
