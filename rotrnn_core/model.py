"""What is the network? Encoder, blocks with residual connections, mean over valid time, classifier."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from rotrnn_core.config import ModelConfig
from rotrnn_core.layers import LAYERS, Cell, Gate, Linear, MaskedBatchNorm, TokenLayerNorm
from rotrnn_core.notation import Inputs, Lengths, Logits, Tokens, Valid


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
        return x + branch

    def states(self, x: Inputs, valid: Valid | None = None, lengths: Lengths | None = None) -> Tensor:
        """The hidden states of the block's cell, zero in the padding."""
        return self.cell.states(self.norm(x, valid), lengths)


class Network(nn.Module):
    """A classifier of token sequences.

    Args:
        config: Sizes, cell, gate and norm.
        tokens: Number of token ids; the encoder is a linear map of their one-hot form.
        classes: Number of classes.
        generator: Source of the initial values; torch's own when absent.
    """

    def __init__(
        self, config: ModelConfig, *, tokens: int, classes: int, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.encoder = Linear(tokens, config.d_model, generator)
        self.blocks = nn.ModuleList(Block(config, generator) for _ in range(config.n_layers))
        self.classifier = Linear(config.d_model, classes, generator)

    def forward(
        self, tokens: Tokens, lengths: Lengths | None = None, *, generator: torch.Generator | None = None
    ) -> Logits:
        """Classify each sequence.

        Args:
            tokens: Token ids, (batch, time).
            lengths: Valid steps of each sequence, (batch,); all of them when absent.
            generator: Source of the dropout masks in training; torch's own when absent.

        Returns:
            Logits, (batch, classes).
        """
        valid = valid_steps(tokens, lengths)
        x = self._encode(tokens)
        for block in self.blocks:
            x = block(x, valid, lengths, generator)
        logits: Tensor = self.classifier(_mean_over_time(x, valid))
        return logits

    def states(self, tokens: Tokens, lengths: Lengths | None = None) -> list[Tensor]:
        """Every layer's hidden states, each (batch, time, directions * d_state), zero in the padding."""
        valid = valid_steps(tokens, lengths)
        x = self._encode(tokens)
        found = []
        for block in self.blocks:
            assert isinstance(block, Block)
            found.append(block.states(x, valid, lengths))
            x = block(x, valid, lengths)
        return found

    def _encode(self, tokens: Tokens) -> Inputs:
        one_hot = functional.one_hot(tokens.long(), self.encoder.fan_in)
        x: Tensor = self.encoder(one_hot.to(self.encoder.weight.dtype))
        return x


def valid_steps(tokens: Tokens, lengths: Lengths | None) -> Valid | None:
    """True where a step belongs to its sequence, (batch, time); None where nothing is padded."""
    if lengths is None:
        return None
    return torch.arange(tokens.shape[1], device=tokens.device) < lengths.unsqueeze(-1)


def _mean_over_time(x: Inputs, valid: Valid | None) -> Tensor:
    if valid is None:
        return x.mean(dim=1)
    share = valid.to(x.dtype)
    share = share / share.sum(dim=1, keepdim=True).clamp(min=1)
    return torch.einsum("bt,btd->bd", share, x)
