"""When are an LRU and a RotRNN the same? Conversions of cells and of whole networks, and a demonstration.

python -m rotrnn_core.equivalence
"""

from rotrnn_core.equivalence.conversion import (
    ScaledRotRNN,
    cell_from,
    lru_from_rotrnn,
    network_from,
    rotrnn_from_lru,
    states_in_rotrnn_basis,
)
from rotrnn_core.equivalence.demonstration import BOUND, Difference, demonstrate
from rotrnn_core.equivalence.equations import by_equations

__all__ = [
    "BOUND",
    "Difference",
    "ScaledRotRNN",
    "by_equations",
    "cell_from",
    "demonstrate",
    "lru_from_rotrnn",
    "network_from",
    "rotrnn_from_lru",
    "states_in_rotrnn_basis",
]
