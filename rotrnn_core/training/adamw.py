"""How does AdamW move the parameters? By torch's functional form, one call per group, with the state laid open.

`torch.optim.AdamW` does the same, but the first use of `torch.optim.Optimizer` imports torch's compiler, which nothing
here needs: two seconds of every run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8


@dataclass(eq=False)
class Group:
    """Parameters that are trained alike.

    Args:
        parameters: The parameters.
        recurrence_rate: Whether they follow the recurrence learning rate rather than the general one.
        weight_decay: Decoupled weight decay, as a share of the learning rate.
        rate: Learning rate of the next step.
    """

    parameters: list[nn.Parameter]
    recurrence_rate: bool
    weight_decay: float
    rate: float = 0.0


class AdamW:
    """Adam with decoupled weight decay (arXiv:1711.05101) over groups of parameters.

    Args:
        groups: The groups; each parameter stands in exactly one.
    """

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups = list(groups)
        parameters = [parameter.detach() for group in self.groups for parameter in group.parameters]
        self._means = [torch.zeros_like(parameter) for parameter in parameters]
        self._squares = [torch.zeros_like(parameter) for parameter in parameters]
        self._steps = [parameter.new_zeros((), dtype=torch.float32) for parameter in parameters]

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for group in self.groups:
            for parameter in group.parameters:
                parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter that has a gradient."""
        begin = 0
        for group in self.groups:
            end = begin + len(group.parameters)
            state = zip(self._means[begin:end], self._squares[begin:end], self._steps[begin:end], strict=True)
            moved = [
                (parameter.detach(), parameter.grad, *rest)
                for parameter, rest in zip(group.parameters, state, strict=True)
                if parameter.grad is not None
            ]
            begin = end
            if moved:
                parameters, gradients, means, squares, steps = map(list, zip(*moved, strict=True))
                adamw(
                    parameters,
                    gradients,
                    means,
                    squares,
                    [],
                    steps,
                    fused=True,
                    amsgrad=False,
                    beta1=BETA1,
                    beta2=BETA2,
                    lr=group.rate,
                    weight_decay=group.weight_decay,
                    eps=EPS,
                    maximize=False,
                )

    def state_dict(self) -> dict[str, list[Tensor]]:
        """The moments and step counts of every parameter, in the order of the groups."""
        return {"means": self._means, "squares": self._squares, "steps": self._steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Become what `state_dict` gave, on the parameters' own devices."""
        for own, given in zip(self.state_dict().values(), state.values(), strict=True):
            for tensor, value in zip(own, given, strict=True):
                tensor.copy_(value)
