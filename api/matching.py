"""How do the cells of a sweep become comparable? Each gets the d_state that matches the first cell's cost."""

from collections.abc import Iterable, Mapping
from typing import Any

from rotrnn_core.config import ConfigError, ModelConfig, RunConfig, cell_config
from rotrnn_core.cost import Match, matched


def cell_fields(grid: Iterable[str], match: Match) -> frozenset[str]:
    """The fields of a grid that vary the cell, none where nothing is to be matched.

    Raises:
        ConfigError: Something is to be matched, and no field varies the cell.
    """
    if match == "d_state":
        return frozenset()
    found = frozenset(field for field in grid if field == "model.cell" or field.startswith("model.cell."))
    if not found:
        raise ConfigError(
            "match", match, "the grid varies no cell to be matched: put model.cell into it, or use d_state"
        )
    return found


def fitted(given: Any, first: Any, match: Match, time: int) -> dict[str, Any]:
    """A model as it was given, with the d_state that brings it nearest to the first cell's model.

    Raises:
        ConfigError: One of the two is no model, or nothing comes near enough.
    """
    to = RunConfig.part_from_dict("model", first)
    return {**given, "d_state": matched(_smallest(given), to, match, time).d_state}


def _smallest(given: Mapping[str, Any]) -> ModelConfig:
    """The model with a d_state that its cell allows, whichever was given."""
    cell = cell_config(given["cell"], "model.cell")
    d_model = given.get("d_model", ModelConfig.d_model)
    unit = cell.state_unit(d_model) if type(d_model) is int and d_model > 0 else 1
    model: ModelConfig = RunConfig.part_from_dict("model", {**given, "d_state": unit})
    return model
