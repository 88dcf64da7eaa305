"""Which layers are there? The recurrent cells by name, the gate and the norms that a network is built of."""

from collections.abc import Callable

from rotrnn_core.layers.cell import Cell, DiagonalCell, use_backend
from rotrnn_core.layers.eigenform import Eigenform
from rotrnn_core.layers.gate import Gate
from rotrnn_core.layers.gru import GRU
from rotrnn_core.layers.linear import Linear
from rotrnn_core.layers.lru import LRU
from rotrnn_core.layers.norm import MaskedBatchNorm, TokenLayerNorm
from rotrnn_core.layers.rotrnn import RotRNN
from rotrnn_core.layers.s4 import S4
from rotrnn_core.layers.s4d import S4D
from rotrnn_core.layers.s5 import S5
from rotrnn_core.layers.stream import Stream
from rotrnn_core.layers.transformer import Transformer

__all__ = [
    "GRU",
    "LAYERS",
    "LRU",
    "S4",
    "S4D",
    "S5",
    "Cell",
    "DiagonalCell",
    "Eigenform",
    "Gate",
    "Linear",
    "MaskedBatchNorm",
    "RotRNN",
    "Stream",
    "TokenLayerNorm",
    "Transformer",
    "use_backend",
]

LAYERS: dict[str, Callable[..., Cell]] = {
    "rotrnn": RotRNN,
    "lru": LRU,
    "s5": S5,
    "s4d": S4D,
    "s4": S4,
    "gru": GRU,
    "transformer": Transformer,
}
"""The layer of each cell's configuration, by the cell's name; its keyword arguments are the configuration's options."""
