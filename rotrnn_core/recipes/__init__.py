"""Which settings are known to be worth running? Complete configurations with their source; needs no torch."""

from typing import Any

from rotrnn_core.recipes import lru, rotrnn, s5, small
from rotrnn_core.recipes.recipe import Recipe

__all__ = ["RECIPES", "Recipe", "demo_sweep"]

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe for recipe in (*rotrnn.recipes(), *lru.recipes(), *s5.recipes(), *small.recipes())
}
"""Every recipe by name."""


def demo_sweep() -> dict[str, Any]:
    """The body of POST /v1/sweeps that compares RotRNN and LRU over depths and seeds in minutes."""
    return {
        "name": "stability-demo",
        "config": RECIPES["listops-short/rotrnn"].config.to_dict(),
        "grid": {
            "model.cell": list(small.SHORT_CELLS.values()),
            "model.n_layers": [1, 2, 4],
            "training.seed": [0, 1, 2],
        },
    }
