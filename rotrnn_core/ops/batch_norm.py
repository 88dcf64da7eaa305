"""What is batch normalisation that leaves padding out? Weighted statistics over rows, with their gradient."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable


def masked_batch_norm(
    rows: Float[Tensor, "rows d_model"],
    share: Float[Tensor, " rows"],
    weight: Float[Tensor, " d_model"],
    bias: Float[Tensor, " d_model"],
    eps: float,
) -> tuple[Float[Tensor, "rows d_model"], Float[Tensor, " d_model"], Float[Tensor, " d_model"]]:
    """Normalise every row by the weighted mean and variance over all rows.

        mean = sum share_i x_i,   var = sum share_i (x_i - mean)^2,   y_i = weight (x_i - mean) / sqrt(var + eps) + bias

    Args:
        rows: What is normalised, (rows, d_model).
        share: Part of each row in the statistics, summing to 1; zero for padding, (rows,).
        weight: Scale per channel, (d_model,).
        bias: Shift per channel, (d_model,).
        eps: Added to the variance.

    Returns:
        The normalised rows, (rows, d_model), and mean and variance, (d_model,), which carry no gradient.
    """
    normalised, mean, variance = _MaskedBatchNorm.apply(rows, share, weight, bias, eps)  # type: ignore[no-untyped-call]
    return normalised, mean, variance


class _MaskedBatchNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, share: Tensor, weight: Tensor, bias: Tensor, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        mean = share @ rows
        centred = rows - mean
        out = centred * centred
        variance = share @ out
        scale = torch.rsqrt(variance + eps)
        torch.addcmul(bias, centred, weight * scale, out=out)
        ctx.save_for_backward(centred, share, weight, scale)
        ctx.mark_non_differentiable(mean, variance)
        return out, mean, variance

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        centred, share, weight, scale = ctx.saved_tensors
        found = grad * centred
        bias_grad, weight_grad = grad.sum(0), found.sum(0) * scale
        factor = scale * weight
        torch.addcmul(-factor * bias_grad, centred, -factor * scale * weight_grad, out=found)
        rows_grad = found.mul_(share.unsqueeze(-1)).addcmul_(grad, factor)
        return rows_grad, None, weight_grad, bias_grad, None
