"""With which settings was LRU published? The paper's tables 8 and 9; N complex channels there are 2 N numbers here."""

import math

from rotrnn_core.cells import LRUConfig
from rotrnn_core.recipes.recipe import Recipe, Row

SOURCE = "LRU, arXiv:2303.06349, tables 8 and 9 (d_state is twice the paper's N); learning rate from a public port"


def _row(
    task: str,
    *,
    d_model: int,
    d_state: int,
    steps: int,
    batch_size: int,
    learning_rate: float,
    factor: float,
    dropout: float = 0.0,
    r_min: float,
    r_max: float,
    max_phase: float = 6.28,
    bidirectional: bool = False,
) -> Row:
    return Row(
        task=task,
        cell=LRUConfig(normaliser="learned", r_min=r_min, r_max=r_max, max_phase=max_phase),
        n_layers=6,
        d_model=d_model,
        d_state=d_state,
        batch_size=batch_size,
        steps=steps,
        learning_rate=learning_rate,
        recurrence_learning_rate=factor * learning_rate,
        dropout=dropout,
        bidirectional=bidirectional,
        gate="full_glu",
    )


ROWS = (
    _row(
        "image-colour",
        d_model=512,
        d_state=768,
        steps=180_000,
        batch_size=50,
        learning_rate=5e-3,
        factor=0.25,
        dropout=0.1,
        r_min=0.9,
        r_max=0.999,
    ),
    _row(
        "listops",
        d_model=128,
        d_state=512,
        steps=80_000,
        batch_size=32,
        learning_rate=3e-3,
        factor=0.5,
        r_min=0.0,
        r_max=0.99,
    ),
    _row(
        "text",
        d_model=256,
        d_state=384,
        steps=50_000,
        batch_size=32,
        learning_rate=4e-3,
        factor=0.1,
        dropout=0.1,
        r_min=0.5,
        r_max=0.9,
    ),
    _row(
        "retrieval",
        d_model=128,
        d_state=512,
        steps=100_000,
        batch_size=64,
        learning_rate=2e-3,
        factor=0.5,
        dropout=0.1,
        r_min=0.5,
        r_max=0.9,
    ),
    _row(
        "pathfinder",
        d_model=192,
        d_state=512,
        steps=500_000,
        batch_size=64,
        learning_rate=4e-3,
        factor=0.25,
        r_min=0.9,
        r_max=0.999,
        bidirectional=True,
    ),
    _row(
        "path-x",
        d_model=128,
        d_state=512,
        steps=250_000,
        batch_size=32,
        learning_rate=2e-3,
        factor=0.25,
        r_min=0.999,
        r_max=0.9999,
        max_phase=math.pi / 10,
        bidirectional=True,
    ),
)


def recipes() -> list[Recipe]:
    """LRU on every task of its paper."""
    return [row.recipe("LRU", SOURCE, "S") for row in ROWS]
