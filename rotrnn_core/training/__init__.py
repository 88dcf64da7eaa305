"""How is a network trained? `train(config)` yields typed records; no database, no logger, no callbacks."""

from rotrnn_core.training.checkpoints import CheckpointUnusable
from rotrnn_core.training.loop import Control, train

__all__ = ["CheckpointUnusable", "Control", "train"]
