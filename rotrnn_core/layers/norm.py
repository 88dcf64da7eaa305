"""How is a block's input normalised? Batch statistics that leave padding out, or each step by itself."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from rotrnn_core.notation import Inputs, Valid
from rotrnn_core.ops.batch_norm import masked_batch_norm


class MaskedBatchNorm(nn.Module):
    """Batch normalisation over (batch, valid time): mean 0 and variance 1 per channel, then weight and bias.

    In training the statistics are the batch's; evaluation uses running ones, kept with `momentum` (the share of the
    new batch). Padding is normalised like the rest, yet counts in no statistic.

    Args:
        d_model: Width of the input.
        eps: Added to the variance.
        momentum: Share of each training batch in the running statistics, in (0, 1].
    """

    running_mean: Float[Tensor, " d_model"]
    running_var: Float[Tensor, " d_model"]

    def __init__(self, d_model: int, *, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.eps = eps
        self.momentum = momentum
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.register_buffer("running_mean", torch.zeros(d_model))
        self.register_buffer("running_var", torch.ones(d_model))

    def forward(self, x: Inputs, valid: Valid | None = None) -> Inputs:
        """Normalise; `valid` is all true when absent. Statistics keep the parameters' precision under autocast."""
        with torch.autocast(x.device.type, enabled=False):
            return self._normalise(x.to(self.weight.dtype), valid)

    def _normalise(self, x: Inputs, valid: Valid | None) -> Inputs:
        rows = x.reshape(-1, x.shape[-1])
        if not self.training:
            scale = self.weight * torch.rsqrt(self.running_var + self.eps)
            return torch.addcmul(self.bias - self.running_mean * scale, rows, scale).view_as(x)
        if valid is None and len(rows) > 1:
            running = self.running_mean, self.running_var
            out = torch.native_batch_norm(rows, self.weight, self.bias, *running, True, self.momentum, self.eps)[0]
            return out.view_as(x)
        counted = x.new_ones(len(rows)) if valid is None else valid.reshape(-1).to(x.dtype)
        count = counted.sum().clamp(min=1)
        normalised, mean, var = masked_batch_norm(rows, counted / count, self.weight, self.bias, self.eps)
        self._remember(mean, var, count)
        return normalised.view_as(x)

    def _remember(self, mean: Tensor, var: Tensor, count: Tensor) -> None:
        unbiased = var * (count / (count - 1).clamp(min=1))
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(unbiased, self.momentum)


class TokenLayerNorm(nn.LayerNorm):
    """Layer normalisation of each step by itself; padding cannot matter."""

    def forward(self, x: Inputs, valid: Valid | None = None) -> Inputs:
        """Normalise each step; `valid` is not needed."""
        return super().forward(x)
