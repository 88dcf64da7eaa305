"""How are the parameters moved? AdamW in groups that follow the modules, linear warm-up, then a cosine.

Each cell says itself what its recurrence, its input and its output parameters are; in every other module matrices
decay and vectors (biases, norms) do not. Nothing is decided by the name of a parameter.

Source: S5, arXiv:2208.04933, and its code, GitHub lindermanlab/S5 (the four ways to treat B and C).
"""

import math
from dataclasses import dataclass

from torch import nn

from rotrnn_core.config import TrainingConfig
from rotrnn_core.layers import Cell
from rotrnn_core.training.adamw import AdamW, Group


@dataclass(frozen=True)
class _Rule:
    """How one kind of parameter is trained."""

    recurrence_rate: bool
    decay: bool


_SLOW, _SLOW_DECAY = _Rule(recurrence_rate=True, decay=False), _Rule(recurrence_rate=True, decay=True)
_FAST, _FAST_DECAY = _Rule(recurrence_rate=False, decay=False), _Rule(recurrence_rate=False, decay=True)

INPUT_AND_OUTPUT: dict[str, tuple[_Rule, _Rule]] = {
    "standard": (_SLOW, _FAST_DECAY),
    "B_and_C_decay": (_SLOW_DECAY, _FAST_DECAY),
    "B_fast_and_C_decay": (_FAST_DECAY, _FAST_DECAY),
    "no_BC_decay": (_SLOW, _SLOW),
}
"""Rules of a cell's input matrix B and of its output matrix C with the skip D, by `parameter_groups`."""


def make_optimiser(network: nn.Module, config: TrainingConfig) -> AdamW:
    """AdamW over all parameters of a network, each in exactly one group."""
    grouped: dict[_Rule, list[nn.Parameter]] = {rule: [] for rule in (_SLOW, _SLOW_DECAY, _FAST, _FAST_DECAY)}
    for parameter, rule in _rules(network, config).items():
        grouped[rule].append(parameter)
    return AdamW(
        [
            Group(parameters, rule.recurrence_rate, config.weight_decay if rule.decay else 0.0)
            for rule, parameters in grouped.items()
            if parameters
        ]
    )


def _rules(network: nn.Module, config: TrainingConfig) -> dict[nn.Parameter, _Rule]:
    inputs, outputs = INPUT_AND_OUTPUT[config.parameter_groups]
    rules: dict[nn.Parameter, _Rule] = {}
    for module in network.modules():
        if isinstance(module, Cell):
            rules |= dict.fromkeys(module.recurrence_parameters(), _SLOW)
            rules |= dict.fromkeys(module.input_parameters(), inputs)
            rules |= dict.fromkeys(module.output_parameters(), outputs)
            assert rules.keys() >= set(module.parameters(recurse=False)), f"{module} leaves a parameter out"
        for parameter in module.parameters(recurse=False):
            rules.setdefault(parameter, _FAST_DECAY if parameter.ndim > 1 else _FAST)
    return rules


def learning_rate(step: int, peak: float, config: TrainingConfig) -> float:
    """The rate of the update that completes `step`, 1-based.

    From the final rate up to `peak` along a line over the warm-up, then along half a cosine to the final rate at the
    last step. A peak below the final rate stays where it is.
    """
    floor = min(config.final_learning_rate, peak)
    if step <= config.warmup_steps:
        share = step / config.warmup_steps
    else:
        share = 0.5 * (1 + math.cos(math.pi * (step - config.warmup_steps) / (config.steps - config.warmup_steps)))
    return floor + (peak - floor) * share


def set_rates(optimiser: AdamW, step: int, config: TrainingConfig) -> tuple[float, float]:
    """Give every group its rate for `step`; returns the two rates, general and recurrence."""
    general = learning_rate(step, config.learning_rate, config)
    recurrence = learning_rate(step, config.recurrence_learning_rate, config)
    for group in optimiser.groups:
        group.rate = recurrence if group.recurrence_rate else general
    return general, recurrence
