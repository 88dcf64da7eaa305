"""With which settings was S5 published? Its scripts, one per task."""

from rotrnn_core.cells import S5Config
from rotrnn_core.recipes.recipe import Recipe, Row

SOURCE = "S5, arXiv:2208.04933, and the scripts of GitHub lindermanlab/S5; the gate where they name none is half_glu1"

ROWS = (
    Row(
        task="listops",
        cell=S5Config(n_blocks=8),
        n_layers=8,
        d_model=128,
        d_state=16,
        gate="half_glu2",
        batch_size=50,
        epochs=40,
        learning_rate=3e-3,
        recurrence_learning_rate=1e-3,
        weight_decay=0.04,
        groups="B_fast_and_C_decay",
    ),
    Row(
        task="text",
        cell=S5Config(n_blocks=12),
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
        cell=S5Config(n_blocks=16),
        n_layers=6,
        d_model=128,
        d_state=256,
        batch_size=32,
        epochs=20,
        learning_rate=2e-3,
        recurrence_learning_rate=1e-3,
        weight_decay=0.05,
    ),
    Row(
        task="image",
        cell=S5Config(n_blocks=3),
        n_layers=6,
        d_model=512,
        d_state=384,
        batch_size=50,
        epochs=250,
        learning_rate=4.5e-3,
        recurrence_learning_rate=1e-3,
        dropout=0.1,
        weight_decay=0.07,
        groups="B_fast_and_C_decay",
    ),
    Row(
        task="pathfinder",
        cell=S5Config(n_blocks=8),
        n_layers=6,
        d_model=192,
        d_state=256,
        batch_size=64,
        epochs=200,
        learning_rate=4.5e-3,
        recurrence_learning_rate=9e-4,
        dropout=0.05,
        weight_decay=0.03,
    ),
    Row(
        task="path-x",
        cell=S5Config(n_blocks=16, dt_min=1e-4),
        n_layers=6,
        d_model=128,
        d_state=256,
        batch_size=32,
        epochs=75,
        learning_rate=1.8e-3,
        recurrence_learning_rate=6e-4,
        weight_decay=0.06,
        groups="B_and_C_decay",
    ),
    Row(
        task="speech-commands",
        cell=S5Config(n_blocks=16),
        n_layers=6,
        d_model=96,
        d_state=128,
        batch_size=16,
        epochs=40,
        learning_rate=8e-3,
        recurrence_learning_rate=2e-3,
        dropout=0.1,
        weight_decay=0.04,
        groups="no_BC_decay",
    ),
)


def recipes() -> list[Recipe]:
    """S5 on every task of its paper."""
    return [row.recipe("S5", SOURCE, "S") for row in ROWS]
