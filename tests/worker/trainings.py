"""What do the worker's tests train, and what has a training said? Tiny runs, and their records bit for bit."""

import struct
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from rotrnn_core.config import RunConfig
from rotrnn_core.records import Evaluation, HiddenNorms, Loss, Record
from store import runs
from store.status import Priority

WALL_CLOCK = {"tokens_per_s"}
"""Series that no two trainings share."""


def tiny(steps: int = 60, **training: Any) -> RunConfig:
    """A training of a few milliseconds a step that says something at every step."""
    return RunConfig.from_dict(
        {
            "task": {"name": "listops-short", "train_size": 64, "validation_size": 8, "test_size": 8},
            "model": {
                "cell": {"name": "rotrnn", "n_heads": 2},
                "d_model": 8,
                "d_state": 8,
                "n_layers": 1,
                "dropout": 0.1,
            },
            "training": {
                "steps": steps,
                "batch_size": 4,
                "warmup_steps": 5,
                "log_every": 1,
                "evaluate_every": 50,
                "checkpoint_every": 25,
                "device": "cpu",
                "backend": "torch",
                **training,
            },
            "probe": {"every": 25, "batch_size": 4, "positions": 8},
        }
    )


def add(session: Session, config: dict[str, Any], *, priority: Priority = Priority.NORMAL, **fields: Any) -> UUID:
    """Queue a run as the door does; `config` may be one that no door would let in."""
    shown = RunConfig.from_dict(config) if not fields.pop("unchecked", False) else tiny()
    run = runs.add(
        session,
        config=config,
        config_hash=str(hash(str(config))),
        cell=shown.model.cell.label,
        task=shown.task.name,
        depth=shown.model.n_layers,
        seed=shown.training.seed,
        total_steps=shown.training.steps,
        priority=priority,
        **{"needs_data": shown.task.needs_data} | fields,
    )
    session.commit()
    return run.id


def said(records: list[Record]) -> tuple[dict[str, dict[int, float]], dict[tuple[str, int], HiddenNorms]]:
    """What a training's records put into the store: series by key, traces by statistic and step."""
    series: dict[str, dict[int, float]] = {}
    traces: dict[tuple[str, int], HiddenNorms] = {}
    for record in records:
        if isinstance(record, Loss | Evaluation):
            for key, value in record.metrics().items():
                series.setdefault(key, {})[record.step] = value
        elif isinstance(record, HiddenNorms):
            traces[record.statistic, record.step] = record
    return series, traces


def bits(values: Iterable[float], kind: str = "d") -> list[bytes]:
    """The numbers as their bits, so that NaN equals itself and -0.0 is not 0.0."""
    return [struct.pack(kind, value) for value in values]
