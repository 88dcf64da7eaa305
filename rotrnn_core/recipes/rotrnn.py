"""With which settings was RotRNN published? One cell of each of the authors' sweep grids; the winning ones are unknown.

Text and Retrieval have no published grid: there the sizes, lengths and rates are S5's.
"""

from rotrnn_core.cells import RotRNNConfig
from rotrnn_core.recipes.recipe import Recipe, Row

GRID = "the authors' sweep grid, GitHub raresdolga/s5; the winning cell is not published, this is one of it"
FROM_S5 = "derived: sizes, length and rates of S5, arXiv:2208.04933, with RotRNN's cell; no RotRNN setting is published"

ROWS = (
    Row(
        task="listops",
        cell=RotRNNConfig(n_heads=32, decay_min=0.5, decay_max=0.999, max_phase=0.0314),
        n_layers=8,
        d_model=128,
        d_state=128,
        gate="full_glu",
        batch_size=50,
        epochs=40,
        learning_rate=1e-3,
        recurrence_learning_rate=5e-4,
        dropout=0.05,
        groups="B_fast_and_C_decay",
    ),
    Row(
        task="image",
        cell=RotRNNConfig(n_heads=64, decay_min=1e-9, decay_max=0.9999, max_phase=6.28),
        n_layers=6,
        d_model=512,
        d_state=384,
        bidirectional=False,
        batch_size=50,
        epochs=250,
        learning_rate=3e-3,
        recurrence_learning_rate=1e-3,
        dropout=0.1,
        groups="B_fast_and_C_decay",
    ),
    Row(
        task="pathfinder",
        cell=RotRNNConfig(n_heads=32, decay_min=0.1, decay_max=0.9999, max_phase=0.31),
        n_layers=6,
        d_model=192,
        d_state=256,
        batch_size=64,
        epochs=200,
        learning_rate=4.5e-3,
        recurrence_learning_rate=1e-3,
        dropout=0.03,
        weight_decay=0.03,
        groups="no_BC_decay",
    ),
    Row(
        task="path-x",
        cell=RotRNNConfig(n_heads=32, decay_min=0.999, decay_max=0.9999, max_phase=0.0314),
        n_layers=6,
        d_model=128,
        d_state=256,
        batch_size=32,
        epochs=75,
        learning_rate=3e-3,
        recurrence_learning_rate=1e-3,
        groups="B_fast_and_C_decay",
    ),
    Row(
        task="speech-commands",
        cell=RotRNNConfig(n_heads=32, decay_min=0.5, decay_max=0.999, max_phase=0.314),
        n_layers=6,
        d_model=96,
        d_state=128,
        batch_size=16,
        epochs=40,
        learning_rate=8e-3,
        recurrence_learning_rate=1e-3,
        dropout=0.1,
        weight_decay=0.04,
        groups="no_BC_decay",
    ),
)
DERIVED_ROWS = (
    Row(
        task="text",
        cell=RotRNNConfig(n_heads=32, decay_min=0.9, decay_max=0.999, max_phase=6.28),
        n_layers=6,
        d_model=256,
        d_state=192,
        gate="half_glu2",
        batch_size=50,
        epochs=35,
        learning_rate=4e-3,
        recurrence_learning_rate=1e-3,
        dropout=0.1,
        weight_decay=0.07,
        warmup_epochs=0,
    ),
    Row(
        task="retrieval",
        cell=RotRNNConfig(n_heads=32, decay_min=0.9, decay_max=0.999, max_phase=6.28),
        n_layers=6,
        d_model=128,
        d_state=256,
        batch_size=32,
        epochs=20,
        learning_rate=2e-3,
        recurrence_learning_rate=1e-3,
        weight_decay=0.05,
    ),
)


def recipes() -> list[Recipe]:
    """RotRNN on every task of the paper."""
    published = [row.recipe("RotRNN", GRID, "U") for row in ROWS]
    return [*published, *(row.recipe("RotRNN", FROM_S5, "U") for row in DERIVED_ROWS)]
