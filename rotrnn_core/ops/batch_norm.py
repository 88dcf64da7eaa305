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
        variance = share @ centred.square()
        scale = torch.rsqrt(variance + eps)
        standard = centred.mul_(scale)
        ctx.save_for_backward(standard, share, weight, scale)
        ctx.mark_non_differentiable(mean, variance)
        return torch.addcmul(bias, standard, weight), mean, variance

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        standard, share, weight, scale = ctx.saved_tensors
        bias_grad = grad.sum(0)
        weight_grad = (grad * standard).sum(0)
        through_statistics = torch.addcmul(bias_grad, standard, weight_grad).mul_(share.unsqueeze(-1))
        return (grad - through_statistics).mul_(scale * weight), None, weight_grad, bias_grad, None
