"""How fast are numbers kept and read, beside MLflow on the same Postgres? `--json` prints one object, units in keys.

    python benchmarks/store.py
    python benchmarks/store.py --json --quick --without-mlflow

A Postgres of its own in a temporary folder, and MLflow from PyPI in a virtual environment of its own (--mlflow DIR
keeps it for the next time). Medians of rounds; ours goes the way of a worker's records and is read through the API.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from sqlalchemy import event, text

from api.groups import Curve, over_seeds
from benchmarks.store_bench import CONFIG, LINES, QUICK, Bench, Size, median_s, opened, processor_s
from benchmarks.store_memory import deleted, exported
from rotrnn_core import records
from store import hidden_norms, ingest, runs, trace_ingest
from store.runs import NewRun
from store.tables import RunRow
from store.trace_encoding import ratio
from store.traces import Stretch
from worker.delivery import Fence, deliver
from worker.spool import Spool

MLFLOW = ("mlflow==3.17.2", "psycopg2-binary")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--quick", action="store_true", help="about a tenth of everything")
    parser.add_argument("--mlflow", type=Path, metavar="DIR", help="MLflow's virtual environment, made where absent")
    parser.add_argument("--without-mlflow", action="store_true")
    parser.add_argument("--only", nargs="+", choices=sorted(MEASURES), help="these measures alone")
    arguments = parser.parse_args()
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "sqlalchemy": version("sqlalchemy"),
        "load_average": psutil.getloadavg()[0],
        "cores": psutil.cpu_count(),
    }
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder), QUICK if arguments.quick else Size()) as bench:
        with bench.sessions() as session:
            found["postgres"] = session.execute(text("SHOW server_version")).scalar_one()
        for name, measure in MEASURES.items():
            if not arguments.only or name in arguments.only:
                said = measure(bench)
                sys.stderr.write(f"{json.dumps(said)}\n")
                found |= said
        if not arguments.without_mlflow and {"chart_ms", "ingest_points_per_s"} <= found.keys():
            found |= _mlflow(bench, arguments.mlflow or Path(folder) / "mlflow")
            found["ingest_over_mlflow"] = found["ingest_points_per_s"] / found["mlflow_ingest_points_per_s"]
            found["chart_over_mlflow"] = found["mlflow_chart_ms"] / found["chart_ms"]
    if arguments.json:
        sys.stdout.write(json.dumps(found) + "\n")
        return
    for name, value in found.items():
        sys.stdout.write(f"{name:36} {value:,.2f}\n" if isinstance(value, float) else f"{name:36} {value}\n")


def ingested(bench: Bench) -> dict[str, float]:
    """Lines of the trainer, six metrics each, from the spool on disk to the commit, as the worker delivers them."""
    rates, costs = [], []
    for round_ in range(3):
        claim = bench.claimed(bench.size.ingest_lines, 1_000 + round_)
        losses = (records.Loss(n, 0.1 * n, 0.5, 1e-3, 1e-3, 1.0, 1e4) for n in range(1, bench.size.ingest_lines + 1))
        fence = Fence(claim.run_id, claim.attempt, claim.token)
        with tempfile.TemporaryDirectory() as folder:
            spool = Spool.create(Path(folder) / "spool", fence.header())
            spool.append([("2026-01-01T00:00:00+00:00", records.to_line(loss)) for loss in losses])
            spent, began = bench.processor_s(), time.perf_counter()
            while deliver(bench.sessions, fence, spool, ""):
                pass
            rates.append(6 * bench.size.ingest_lines / (time.perf_counter() - began))
            costs.append(6 * bench.size.ingest_lines / (bench.processor_s() - spent))
            spool.remove()
    return {
        "ingest_points_per_s": statistics.median(rates),
        "ingest_points_per_processor_s": statistics.median(costs),
    }


def charted(bench: Bench) -> dict[str, float]:
    """Twelve long series in a thousand buckets, through the API."""
    rng = np.random.default_rng(0)
    claims = [bench.claimed(bench.size.length, seed) for seed in range(LINES)]
    for claim in claims:
        values = rng.normal(size=bench.size.length).tolist()
        for start in range(0, bench.size.length, 10_000):
            points = [("train_loss", start + n + 1, value) for n, value in enumerate(values[start : start + 10_000])]
            bench.write(claim, ingest.Batch(metrics=points))
    bench.settle()
    query = {"run_id": [str(claim.run_id) for claim in claims], "key": "train_loss", "buckets": 1_000}
    answer = bench.get("/v1/charts/metrics", **query)
    assert sum(map(sum, (line["points"] for line in answer.json()["lines"]))) == LINES * bench.size.length
    spent = processor_s(bench, lambda: bench.get("/v1/charts/metrics", **query))
    return {
        "chart_ms": 1e3 * median_s(lambda: bench.get("/v1/charts/metrics", **query)),
        "chart_processor_ms": 1e3 * spent,
        "chart_bytes": float(len(answer.content)),
    }


def traced(bench: Bench) -> dict[str, float]:
    """The place that a run of 32 layers with a record at every step takes, its indexes included."""
    claim = bench.claimed(bench.size.recorded, 2_000, depth=32)
    _fill_traces(bench, claim, layers=32, positions=64)
    bench.settle()
    with bench.sessions() as session:
        size = session.execute(text("SELECT pg_total_relation_size('hidden_norms')")).scalar_one()
        began = time.perf_counter()
        hidden_norms.traces(session, [claim.run_id], "relative")
    return {"trace_megabytes": size / 1e6, "trace_read_s": time.perf_counter() - began}


def compared(bench: Bench) -> dict[str, float]:
    """Statistics of 2 cells, 4 depths and 10 seeds, 8 layers each, at every recorded step: read and computed."""
    claims = []
    for cell in ("rotrnn", "lru-learned"):
        for depth in (8, 9, 10, 11):
            for seed in range(10):
                claims.append(bench.claimed(bench.size.recorded, seed, cell, depth))
                _fill_traces(bench, claims[-1], layers=8, positions=1, measured=("whole",))
    bench.settle()
    ids = [claim.run_id for claim in claims]

    def every_step() -> None:
        with bench.sessions() as session:
            found = hidden_norms.traces(session, ids, "relative")
        for start in range(0, len(ids), 10):
            group = [found[run_id] for run_id in ids[start : start + 10]]
            together = over_seeds([Curve(n, one.steps.astype(np.int64), one.mean) for n, one in enumerate(group)])
            assert together.n.min() == 10

    def answered() -> None:
        bench.get("/v1/compare/hidden-norms", depth=[8, 9, 10, 11], max_steps=1_000, layer=0)

    return {
        "statistics_s": median_s(every_step, 3),
        "statistics_processor_s": processor_s(bench, every_step, 3),
        "statistics_answer_s": median_s(answered, 3),
    }


def listed(bench: Bench) -> dict[str, float]:
    """A page of runs among many, with a filter and without, and the statements of one."""
    cells = [("rotrnn", "lru-learned")[n % 2] for n in range(bench.size.listed)]
    with bench.sessions.begin() as session:
        new = (NewRun(CONFIG, f"listed-{n}", cell, "listops-short", 2, n, 100) for n, cell in enumerate(cells))
        runs.add_many(session, list(new))
    bench.settle()
    statements: list[str] = []
    app: Any = bench.http.app
    event.listen(app.state.sessions.kw["bind"], "before_cursor_execute", lambda *given: statements.append(given[2]))
    queries: list[dict[str, Any]] = [{"limit": 50}, {"limit": 50, "cell": "rotrnn", "status": "queued"}]
    bench.get("/v1/runs", **queries[1])
    number = float(len(statements))
    times = [median_s(lambda query=query: bench.get("/v1/runs", **query)) for query in queries]  # type: ignore[misc]
    return {"list_10k_ms": 1e3 * times[0], "list_10k_filtered_ms": 1e3 * times[1], "list_queries": number}


def _fill_traces(
    bench: Bench,
    claim: runs.Claim,
    *,
    layers: int,
    positions: int,
    measured: Sequence[str] = ("per_head", "whole"),
) -> None:
    """Norms that wander by a third of a percent a step, in rows as long as those that ingest leaves."""
    rng = np.random.default_rng(claim.run_id.int % 2**32)
    recorded = bench.size.recorded
    profiled = np.arange(0, recorded, max(1, recorded // trace_ingest.PARTS), dtype=np.int32)

    def walk(*shape: int) -> Any:
        return np.exp(np.cumsum(rng.normal(0, 3e-3, shape), axis=0))

    with bench.sessions.begin() as session:
        run = session.get_one(RunRow, claim.run_id)
        for first in range(0, recorded, 512):
            steps = np.arange(first, min(first + 512, recorded), dtype=np.int32)
            kept = profiled[(profiled >= first) & (profiled <= steps[-1])]
            made = {}
            for statistic in measured:
                doubles = [walk(steps.size, layers) for _ in range(4)]
                profile = walk(kept.size, layers, positions).astype(np.float32)
                made[statistic] = Stretch(steps, *doubles, np.zeros((steps.size, layers), np.int32), kept, profile)
            whole = {name: getattr(made["whole"], name) for name in ("mean", "deviation", "minimum", "maximum")}
            shares = {name: ratio(values, np.full(layers, 1.7)) for name, values in whole.items()}
            along = ratio(made["whole"].profile.reshape(kept.size, -1), np.full(layers * positions, 1.7))
            made["relative"] = Stretch(
                steps,
                **shares,
                non_finite=made["whole"].non_finite,
                profile_steps=kept,
                profile=along.reshape(made["whole"].profile.shape),
            )
            trace_ingest.insert(session, run, made)


def _mlflow(bench: Bench, venv: Path) -> dict[str, Any]:
    python = venv / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *MLFLOW], check=True)
    name = f"mlflow_{time.time_ns()}"
    with bench.sessions() as session:
        connection = session.connection(execution_options={"isolation_level": "AUTOCOMMIT"})
        connection.execute(text(f"CREATE DATABASE {name}"))
    url = f"{bench.url.rpartition('/')[0]}/{name}".replace("+psycopg", "+psycopg2")
    size = [str(number) for number in (bench.size.mlflow_points, LINES, bench.size.length)]
    side = Path(__file__).with_name("mlflow_side.py")
    said = subprocess.run([str(python), str(side), url, *size], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr[-3000:]
    found: dict[str, Any] = json.loads(said.stdout.splitlines()[-1])
    return found


MEASURES: dict[str, Callable[[Bench], dict[str, float]]] = {
    each.__name__: each for each in (ingested, charted, traced, compared, listed, exported, deleted)
}

if __name__ == "__main__":
    main()
