"""How good is the network on a whole split?"""

from typing import Literal

import torch
from torch.nn import functional

from rotrnn_core.model import Network
from rotrnn_core.records import Evaluation
from rotrnn_core.tasks import Sequences, batches_in_order


@torch.no_grad()
def evaluate(
    network: Network,
    sequences: Sequences,
    *,
    split: Literal["validation", "test"],
    step: int,
    batch_size: int,
    device: torch.device,
) -> Evaluation:
    """Mean cross-entropy and accuracy over every sequence of a split, in evaluation mode."""
    was_training = network.training
    network.eval()
    loss = torch.zeros((), dtype=torch.float64, device=device)
    right = torch.zeros((), dtype=torch.int64, device=device)
    for batch in batches_in_order(sequences, batch_size):
        batch = batch.to(device)
        logits = network(batch.inputs, batch.cuts)
        loss += functional.cross_entropy(logits.double(), batch.labels, reduction="sum")
        right += (logits.argmax(-1) == batch.labels).sum()
    network.train(was_training)
    count = len(sequences)
    return Evaluation(step=step, split=split, loss=loss.item() / count, accuracy=right.item() / count)
