"""What does the dashboard show when it is measured? A sweep of 500 runs of 50,000 steps each, as workers leave them.

Three seeds of each cell and depth are drawn and go the way of a worker's records; the further seeds repeat them, copied
within the database, so that the whole is there in a minute.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import text
from sqlalchemy.orm import Session, sessionmaker

from client import RotBench, Run
from rotrnn_core.records import Divergence, Started
from store import ingest, leases, trace_ingest
from store.status import Status
from store.tables import Base, RunRow
from store.trace_encoding import ratio
from store.traces import Stretch

STEPS = 50_000
LOGGED, EVALUATED, PROBED = 100, 500, 50
"""Steps between two points of the training metrics, of the validation metrics, and of the hidden norms."""
POSITIONS = 64
CELLS = [
    {"name": "rotrnn"},
    {"name": "rotrnn", "first_step": "authors"},
    {"name": "lru", "normaliser": "learned"},
    {"name": "lru", "normaliser": "tied"},
]
DRAWN = 3
_GROWTH = {"rotrnn": 0.01, "lru-learned": 0.9, "lru-tied": 0.3, "rotrnn-authors": 0.05}


@dataclass(frozen=True)
class Extent:
    """How many runs: every cell with every depth and seed."""

    depths: tuple[int, ...] = (1, 2, 4, 6, 8)
    seeds: int = 25


def fill(bench: RotBench, sessions: sessionmaker[Session], extent: Extent) -> None:
    """Submit the sweep and leave its runs behind as ended: one seed of an LRU's deepest networks has diverged."""
    training = {"steps": STEPS, "log_every": LOGGED, "evaluate_every": EVALUATED, "warmup_steps": 500}
    base = {"model": {"d_model": 64, "d_state": 64}, "training": training, "probe": {"every": PROBED}}
    grid = {
        "model.cell": CELLS,
        "model.n_layers": list(extent.depths),
        "training.seed": list(range(extent.seeds)),
    }
    sweep = bench.sweep(base, grid, name="stability over seeds and depths")
    made = list(bench.runs(sweep_id=sweep.id, limit=200))
    drawn = {(run.cell, run.depth, run.seed): run.id for run in made if run.seed < DRAWN}
    for run in made:
        lost = run.cell == "lru-tied" and run.depth == max(extent.depths) and run.seed == 1
        _train(sessions, run, lost)
    repeated = {run.id: drawn[run.cell, run.depth, run.seed % DRAWN] for run in made if run.seed >= DRAWN}
    with sessions.begin() as session:
        _repeat(session, repeated)
    with sessions() as session:
        session.connection(execution_options={"isolation_level": "AUTOCOMMIT"}).execute(text("VACUUM ANALYZE"))


def _train(sessions: sessionmaker[Session], run: Run, lost: bool) -> None:
    last = STEPS * 3 // 5 if lost else STEPS
    positions = tuple(range(1, POSITIONS + 1))
    with sessions.begin() as session:
        claim = leases.claim(session, UUID(run.id), worker_id="desk:cuda:0", lease_s=600, host="desk", device="cuda:0")
        assert claim is not None
        started = Started(0, STEPS, 20_000 * run.depth, "NVIDIA H200", positions, {"torch": "2", "python": "3"})
        batch = ingest.Batch(_metrics(run, last) if run.seed < DRAWN else (), step=last, started=started)
        ingest.write(session, claim.run_id, claim.attempt, claim.token, batch)
        if run.seed < DRAWN:
            _norms(session, session.get_one(RunRow, claim.run_id), run, last)
        leases.finish(
            session,
            claim.run_id,
            claim.attempt,
            claim.token,
            status=Status.DIVERGED if lost else Status.SUCCEEDED,
            divergence=Divergence(last, 1, "activation") if lost else None,
        )


def _metrics(run: Run, last: int) -> list[tuple[str, int, float]]:
    noise = np.random.default_rng(run.seed).normal(0, 0.02, last + 1).tolist()
    points: list[tuple[str, int, float]] = []
    for step in range(LOGGED, last + 1, LOGGED):
        done = step / STEPS
        points += [
            ("train_loss", step, 2.3 * np.exp(-2 * done) + noise[step]),
            ("train_accuracy", step, 0.1 + 0.5 * done + noise[step]),
            ("learning_rate", step, 3e-3 * (1 - done)),
            ("recurrence_learning_rate", step, 1e-3 * (1 - done)),
            ("gradient_norm", step, float(np.exp(noise[step]))),
            ("tokens_per_s", step, 1e5 * (1 + noise[step])),
        ]
        if step % EVALUATED == 0:
            points += [("validation_loss", step, 2.3 * np.exp(-done)), ("validation_accuracy", step, 0.1 + 0.4 * done)]
    if last == STEPS:
        points += [("test_loss", last, 0.9), ("test_accuracy", last, 0.5 + noise[0])]
    return points


def _norms(session: Session, row: RunRow, run: Run, last: int) -> None:
    """Norms that saturate and wander a little, in rows as long as those that ingest leaves."""
    rng = np.random.default_rng([run.seed, run.depth])
    steps = np.arange(0, last + 1, PROBED, dtype=np.int32)
    kept = steps[:: max(1, steps.size // trace_ingest.PARTS)]
    grown = _GROWTH[run.cell] * (1 + 0.2 * np.arange(run.depth)) * (1 - np.exp(-steps / 8_000))[:, None]
    course = np.exp(grown + np.cumsum(rng.normal(0, 3e-3, (steps.size, run.depth)), axis=0))
    along = np.exp(rng.normal(0, 0.02, (kept.size, run.depth, POSITIONS)))
    unit = np.full(run.depth, 7.3)
    for first in range(0, steps.size, 512):
        part, inside = steps[first : first + 512], course[first : first + 512]
        profiled = (kept >= part[0]) & (kept <= part[-1])
        whole = _stretch(part, 7.3 * inside, kept[profiled], 7.3 * along[profiled])
        shares = {name: ratio(getattr(whole, name), unit) for name in ("mean", "deviation", "minimum", "maximum")}
        profile = ratio(whole.profile.reshape(len(whole.profile), -1), np.repeat(unit, POSITIONS))
        relative = Stretch(
            part,
            **shares,
            non_finite=whole.non_finite,
            profile_steps=whole.profile_steps,
            profile=profile.reshape(whole.profile.shape),
        )
        pieces: Mapping[str, Stretch] = {
            "per_head": _stretch(part, 0.9 * inside, kept[profiled], 0.9 * along[profiled]),
            "whole": whole,
            "relative": relative,
        }
        trace_ingest.insert(session, row, dict(pieces))


def _stretch(steps: NDArray[np.int32], mean: Any, kept: NDArray[np.int32], profile: Any) -> Stretch:
    none = np.zeros(mean.shape, np.int32)
    return Stretch(steps, mean, 0.1 * mean, 0.8 * mean, 1.3 * mean, none, kept, profile.astype(np.float32))


def _repeat(session: Session, source_of: Mapping[str, str]) -> None:
    """Give runs what other runs measured."""
    pairs = {"copies": list(source_of), "sources": list(source_of.values())}
    for table in ("metrics", "metric_blocks", "hidden_norms"):
        names = [column.name for column in Base.metadata.tables[table].columns if column.name != "run_id"]
        columns = ", ".join(f'"{name}"' for name in names)
        session.execute(
            text(
                f"INSERT INTO {table} (run_id, {columns}) SELECT pairs.run_id, {columns} FROM {table} JOIN "
                "unnest(CAST(:copies AS uuid[]), CAST(:sources AS uuid[])) AS pairs (run_id, source) "
                f"ON {table}.run_id = pairs.source"
            ),
            pairs,
        )
