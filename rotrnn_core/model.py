"""What is the network? Encoder, blocks with residual connections, mean over valid time, classifier.

The encoder is a linear map of one-hot token ids or of real-valued frames. Where an example is a pair of documents,
both go through one encoder and the same blocks, and the classifier reads [a, b, a - b, a * b].
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from rotrnn_core.catalogue import TaskInfo
from rotrnn_core.config import ModelConfig
from rotrnn_core.layers import LAYERS, Cell, Gate, Linear, MaskedBatchNorm, TokenLayerNorm
from rotrnn_core.notation import Frames, Inputs, Lengths, Logits, Tokens, Valid


def build_cell(config: ModelConfig, generator: torch.Generator | None = None) -> Cell:
    """The cell that `config.cell` names, at the model's sizes."""
    return LAYERS[config.cell.name](
        config.d_model,
        config.d_state,
        bidirectional=config.bidirectional,
        generator=generator,
        **config.cell.options(),
    )


class Block(nn.Module):
    """x -> norm -> cell -> gate -> + x."""

    def __init__(self, config: ModelConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.norm = MaskedBatchNorm(config.d_model) if config.norm == "batch" else TokenLayerNorm(config.d_model)
        self.cell = build_cell(config, generator)
        self.gate = Gate(config.d_model, config.gate, dropout=config.dropout, generator=generator)

    def forward(
        self,
        x: Inputs,
        valid: Valid | None = None,
        lengths: Lengths | None = None,
        generator: torch.Generator | None = None,
    ) -> Inputs:
        """One block; `valid` and `lengths` say the same and are both absent where nothing is padded."""
        branch: Tensor = self.gate(self.cell(self.norm(x, valid), lengths), generator)
        return branch.add_(x) if branch.dtype == x.dtype else x + branch

    def states(self, x: Inputs, valid: Valid | None = None, lengths: Lengths | None = None) -> Tensor:
        """The hidden states of the block's cell, zero in the padding."""
        return self.cell.states(self.norm(x, valid), lengths)


class PairClassifier(nn.Module):
    """[a, b, a - b, a * b] -> linear -> gelu -> linear: what two documents have to do with each other."""

    def __init__(self, d_model: int, classes: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.hidden = Linear(4 * d_model, d_model, generator)
        self.logits = Linear(d_model, classes, generator)

    def forward(self, documents: Float[Tensor, "twice_batch d_model"]) -> Logits:
        """Classify pairs whose members lie one after the other."""
        a, b = documents[0::2], documents[1::2]
        features = torch.cat([a, b, a - b, a * b], dim=-1)
        logits: Tensor = self.logits(functional.gelu(self.hidden(features), approximate="tanh"))
        return logits


class Network(nn.Module):
    """A classifier of sequences of token ids or frames, or of pairs of them.

    Args:
        config: Sizes, cell, gate and norm.
        tokens: Number of token ids; the encoder is a linear map of their one-hot form.
        channels: Width of a frame, where the input is real-valued; exactly one of `tokens` and `channels` is given.
        classes: Number of classes.
        documents: Sequences per example, 1 or 2.
        generator: Source of the initial values; torch's own when absent.
    """

    def __init__(
        self,
        config: ModelConfig,
        *,
        tokens: int = 0,
        channels: int = 0,
        classes: int,
        documents: int = 1,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        assert bool(tokens) != bool(channels)
        assert documents in (1, 2)
        self.reads_tokens = bool(tokens)
        self.encoder = Linear(tokens or channels, config.d_model, generator)
        self.blocks = nn.ModuleList(Block(config, generator) for _ in range(config.n_layers))
        head = Linear if documents == 1 else PairClassifier
        self.classifier = head(config.d_model, classes, generator)

    def forward(
        self, inputs: Tokens | Frames, lengths: Lengths | None = None, *, generator: torch.Generator | None = None
    ) -> Float[Tensor, "examples classes"]:
        """Classify each example.

        Args:
            inputs: Token ids, (documents * batch, time), or frames, (documents * batch, time, channels); the two
                documents of a pair lie one after the other.
            lengths: Valid steps of each sequence, (documents * batch,); all of them when absent.
            generator: Source of the dropout masks in training; torch's own when absent.

        Returns:
            Logits, one row for each example, (examples, classes).
        """
        valid = valid_steps(inputs, lengths)
        x = self._encode(inputs)
        for block in self.blocks:
            x = block(x, valid, lengths, generator)
        logits: Tensor = self.classifier(_mean_over_time(x, valid))
        return logits

    def states(self, inputs: Tokens | Frames, lengths: Lengths | None = None) -> list[Tensor]:
        """Every layer's hidden states, each (documents * batch, time, directions * d_state), zero in the padding."""
        valid = valid_steps(inputs, lengths)
        x = self._encode(inputs)
        found = []
        for block in self.blocks:
            assert isinstance(block, Block)
            found.append(block.states(x, valid, lengths))
            x = block(x, valid, lengths)
        return found

    def _encode(self, inputs: Tokens | Frames) -> Inputs:
        weight, bias = self.encoder.weight, self.encoder.bias
        if self.reads_tokens:
            return functional.embedding(inputs, weight.t()) + bias
        x: Tensor = self.encoder(inputs.to(weight.dtype))
        return x


def network_for(model: ModelConfig, task: TaskInfo, generator: torch.Generator | None = None) -> Network:
    """The network of a model's sizes that reads a task's examples."""
    return Network(
        model,
        tokens=task.tokens,
        channels=task.channels,
        classes=task.classes,
        documents=task.documents,
        generator=generator,
    )


def valid_steps(inputs: Tokens | Frames, lengths: Lengths | None) -> Valid | None:
    """True where a step belongs to its sequence, (batch, time); None where nothing is padded."""
    if lengths is None:
        return None
    return torch.arange(inputs.shape[1], device=inputs.device) < lengths.unsqueeze(-1)


def _mean_over_time(x: Inputs, valid: Valid | None) -> Tensor:
    if valid is None:
        return x.mean(dim=1)
    share = valid.to(x.dtype)
    share = share / share.sum(dim=1, keepdim=True).clamp(min=1)
    return torch.einsum("bt,btd->bd", share, x)
