"""What is a gated unit in few passes over memory? gelu, dropout, linear maps and a sigmoid, with their gradient."""

from typing import Any, Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from rotrnn_core.notation import Inputs

Mask: TypeAlias = Float[Tensor, "batch 1 d_model"]
Weight: TypeAlias = Float[Tensor, "d_model d_model"]
Bias: TypeAlias = Float[Tensor, " d_model"]
Value: TypeAlias = Literal["mapped", "active", "input"]


def gated_unit(
    y: Inputs,
    opening: tuple[Weight, Bias],
    value: Value,
    mapping: tuple[Weight, Bias] | None = None,
    masks: tuple[Mask | None, Mask | None] = (None, None),
) -> Inputs:
    """Let through what a sigmoid of the active input opens.

        active = mask_0 * gelu(y),   out = mask_1 * value * sigmoid(W2 active + b2)

    Args:
        y: Input, (batch, time, d_model).
        opening: W2 and b2.
        value: "active", "input" (y itself), or "mapped": W1 active + b1.
        mapping: W1 and b1, where the value is mapped.
        masks: Factors for each sequence and channel, one where absent.

    Returns:
        Output, (batch, time, d_model). gelu is the tanh form; the gradient is analytic and first order only.
    """
    W1, b1 = mapping or (None, None)
    out: Tensor = _GatedUnit.apply(y.contiguous(), W1, b1, *opening, *masks, value)  # type: ignore[no-untyped-call]
    return out


class _GatedUnit(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        y: Tensor,
        W1: Tensor | None,
        b1: Tensor | None,
        W2: Tensor,
        b2: Tensor,
        first: Tensor | None,
        second: Tensor | None,
        value: Value,
    ) -> Tensor:
        active = functional.gelu(y, approximate="tanh")
        if first is not None:
            active.mul_(first)
        rows = active.view(-1, y.shape[-1])
        opened = torch.addmm(b2, rows, W2.t()).sigmoid_().view_as(y)
        mapped = torch.addmm(b1, rows, W1.t()).view_as(y) if W1 is not None and b1 is not None else None
        out = _value(value, y, active, mapped) * opened
        if second is not None:
            out.mul_(second)
        ctx.save_for_backward(y, active, mapped, opened, W1, W2, first, second)
        ctx.value = value
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        y, active, mapped, opened, W1, W2, first, second = ctx.saved_tensors
        grad = grad.contiguous()
        shape, width = y.shape, y.shape[-1]
        own = grad if second is None else grad * second
        by_opening = own * _value(ctx.value, y, active, mapped)
        torch.ops.aten.sigmoid_backward.grad_input(by_opening, opened, grad_input=by_opening)
        by_value = grad * opened if second is None else own.mul_(opened)

        rows, by_value_rows, by_opening_rows = (part.view(-1, width) for part in (active, by_value, by_opening))
        by_W1 = by_b1 = None
        if W1 is not None:
            by_W1, by_b1 = by_value_rows.t() @ rows, by_value_rows.sum(0)
            by_active = (by_value_rows @ W1).addmm_(by_opening_rows, W2)
        elif ctx.value == "active":
            by_active = by_value_rows.addmm_(by_opening_rows, W2)
        else:
            by_active = by_opening_rows @ W2
        by_y = by_active.view(shape)
        if first is not None:
            by_y.mul_(first)
        torch.ops.aten.gelu_backward.grad_input(by_y, y, approximate="tanh", grad_input=by_y)
        if ctx.value == "input":
            by_y.add_(by_value)
        return by_y, by_W1, by_b1, by_opening_rows.t() @ rows, by_opening_rows.sum(0), None, None, None


def _value(value: Value, y: Tensor, active: Tensor, mapped: Tensor | None) -> Tensor:
    if mapped is not None:
        return mapped
    return active if value == "active" else y
