"""What does a network cost? Parameters, state and operations per token, from its configuration; needs no torch.

d = d_model, s = d_state, D = directions (1 or 2). An operation is one multiplication or one addition of real numbers in
the forward pass: of every linear map, and of the recurrence where it is linear, in the form that goes on step by step.
Left out are biases, activations and norms, which are alike for all cells, and the classifier, which works once per
sequence.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from rotrnn_core.checks import ConfigError
from rotrnn_core.config import ModelConfig, TaskInfo

Match = Literal["d_state", "parameters", "flops"]
"""What all cells of a comparison have in common."""

FARTHEST = 0.25
"""How far matched layers may lie from what they are matched to, as a share of it."""
_MOST_STATE = 65_536


@dataclass(frozen=True)
class Cost:
    """What a network needs.

    Args:
        parameters: Trained numbers.
        state_size: Real numbers that all layers carry from one step to the next; 0 for attention, which carries none
            of fixed size.
        flops_per_token: Multiplications and additions of a forward pass, per token.
    """

    parameters: int
    state_size: int
    flops_per_token: int


@dataclass(frozen=True)
class _CellCost:
    """Of one cell: parameters (cell, d, s, D), and operations per token (d, s, D, time)."""

    parameters: Callable[[Any, int, int, int], int]
    flops: Callable[[int, int, int, int], int]


def _diagonal_flops(d: int, s: int, directions: int, time: int) -> int:
    """Drive 2 s d; per direction 4 s to turn and drive the state, 2 s d to read it, d to add it up; d for the skip."""
    return 2 * s * d + directions * (4 * s + 2 * s * d + d) + d


_CELLS: dict[str, _CellCost] = {
    # M, theta, gamma_log, B, C, D
    "rotrnn": _CellCost(
        lambda cell, d, s, directions: s * s // cell.n_heads + s // 2 + cell.n_heads + s * d + directions * s * d + d,
        _diagonal_flops,
    ),
    # nu_log, theta_log, gamma_log; B, C, D
    "lru": _CellCost(
        lambda cell, d, s, directions: (
            (3 if cell.normaliser == "learned" else 2) * s // 2 + s * d + directions * s * d + d
        ),
        _diagonal_flops,
    ),
    "s5": _CellCost(lambda cell, d, s, directions: 3 * s // 2 + s * d + directions * s * d + d, _diagonal_flops),
    # Per direction s to drive, 4 s for the recurrence, 2 s to read, d to add it up; d for the skip.
    "s4d": _CellCost(
        lambda cell, d, s, directions: s * (2 + directions) + 2 * d,
        lambda d, s, directions, time: directions * (7 * s + d) + d,
    ),
    # Per direction 18 s + 2 d for a step by Woodbury's identity, 2 s to read, d to add it up; d for the skip.
    "s4": _CellCost(
        lambda cell, d, s, directions: s * (3 + directions) + 2 * d,
        lambda d, s, directions, time: directions * (20 * s + 3 * d) + d,
    ),
    "gru": _CellCost(
        lambda cell, d, s, directions: directions * 3 * s * (d + s + 2) + (directions * s + 1) * d,
        lambda d, s, directions, time: directions * (6 * s * (d + s) + 2 * s * d),
    ),
    # Four maps of the attention, scores and their sum over the whole sequence, two maps of the feed-forward part.
    "transformer": _CellCost(
        lambda cell, d, s, directions: 4 * d * (d + 1) + 4 * d + s * (2 * d + 1) + d,
        lambda d, s, directions, time: 8 * d * d + 4 * time * d + 4 * s * d,
    ),
}
_GATE_MAPS = {"full_glu": 2, "half_glu1": 1, "half_glu2": 1, "gelu": 0}
"""Linear maps from d_model to d_model in each gate."""


def cell_cost(model: ModelConfig, time: int) -> Cost:
    """What one cell of these sizes needs.

    Args:
        model: The sizes and the cell; the number of layers does not matter.
        time: Length of a sequence; attention alone depends on it.
    """
    of = _CELLS[model.cell.name]
    d, s, directions = model.d_model, model.d_state, 2 if model.bidirectional else 1
    return Cost(
        parameters=of.parameters(model.cell, d, s, directions),
        state_size=directions * s if model.cell.has_state else 0,
        flops_per_token=of.flops(d, s, directions, time),
    )


def blocks_cost(model: ModelConfig, time: int) -> Cost:
    """What all blocks need: norm, cell and gate; the rest of a network is the same for every cell."""
    cell, d, maps = cell_cost(model, time), model.d_model, _GATE_MAPS[model.gate]
    return Cost(
        parameters=model.n_layers * (cell.parameters + 2 * d + maps * (d * d + d)),
        state_size=model.n_layers * cell.state_size,
        flops_per_token=model.n_layers * (cell.flops_per_token + maps * 2 * d * d),
    )


def cost(model: ModelConfig, task: TaskInfo) -> Cost:
    """What a network needs that reads a task's examples, on sequences of the task's longest length."""
    blocks, d = blocks_cost(model, task.longest), model.d_model
    width = task.tokens or task.channels
    hidden = 0 if task.documents == 1 else (4 * d + 1) * d
    return Cost(
        parameters=(width + 1) * d + blocks.parameters + hidden + (d + 1) * task.classes,
        state_size=blocks.state_size,
        # A token's row of the encoder is looked up, a frame is multiplied.
        flops_per_token=blocks.flops_per_token + (0 if task.tokens else 2 * width * d),
    )


def matched(model: ModelConfig, to: ModelConfig, match: Match, time: int) -> ModelConfig:
    """The model with the d_state that brings its blocks nearest to another's parameters or operations per token.

    d_state goes in the steps that the cell allows; "d_state" leaves the model as it is.

    Args:
        model: What is sized.
        to: What it is compared with, of the same width, depth, gate and directions.
        match: What the two shall have in common.
        time: Length of a sequence, for attention.

    Raises:
        ConfigError: No d_state brings it within a quarter.
    """
    if match == "d_state":
        return model
    unit = model.cell.state_unit(model.d_model)

    def sized(units: int) -> ModelConfig:
        return replace(model, d_state=units * unit)

    def quantity(of: ModelConfig) -> int:
        found = blocks_cost(of, time)
        return found.parameters if match == "parameters" else found.flops_per_token

    wanted = quantity(to)
    below, above = 1, _MOST_STATE // unit
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (middle, above) if quantity(sized(middle)) <= wanted else (below, middle)
    found = min((sized(below), sized(above)), key=lambda candidate: abs(quantity(candidate) - wanted))
    if abs(quantity(found) - wanted) > FARTHEST * wanted:
        words = "parameters" if match == "parameters" else "operations per token"
        raise ConfigError(
            "match",
            match,
            f"the nearest that the layers of {model.cell.title} come to the {wanted} {words} of {to.cell.title} is "
            f"{quantity(found)}, with d_state {found.d_state}; change d_model or the cell's options",
        )
    return found
