"""What does MLflow need for the same work? Run by benchmarks/store_numbers.py in MLflow's own virtual environment.

    python benchmarks/mlflow_side.py URL POINTS LINES LENGTH

Speaks to MLflow's SQL store itself, without its HTTP server. Prints one JSON object.
"""

import json
import statistics
import sys
import time
from importlib.metadata import version

from mlflow.entities import Metric
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
from sqlalchemy import text

BATCH = 1_000
"""Metrics per log_batch, the most that MLflow takes."""
ROUNDS = 3


def main(url: str, points: int, lines: int, length: int) -> None:
    store = SqlAlchemyStore(url, "file:///tmp/rotbench-mlflow-artifacts")
    experiment = store.create_experiment(f"bench-{time.time_ns()}")
    rates = []
    for _ in range(ROUNDS):
        run_id = _run(store, experiment)
        batches = [
            [Metric(f"metric_{n % 6}", 0.1 * n, 1_700_000_000_000 + n, n // 6) for n in range(start, start + BATCH)]
            for start in range(0, points, BATCH)
        ]
        began = time.perf_counter()
        for batch in batches:
            store.log_batch(run_id, batch, [], [])
        rates.append(points / (time.perf_counter() - began))
    ids = [_run(store, experiment) for _ in range(lines)]
    _fill(store, ids, length)
    charts = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        histories = [store.get_metric_history(run_id, "train_loss") for run_id in ids]
        charts.append(time.perf_counter() - began)
        assert [len(history) for history in histories] == [length] * lines
    found = {
        "mlflow_version": version("mlflow"),
        "mlflow_ingest_points_per_s": statistics.median(rates),
        "mlflow_chart_ms": 1e3 * statistics.median(charts),
    }
    sys.stdout.write(json.dumps(found) + "\n")


def _run(store: SqlAlchemyStore, experiment: str) -> str:
    return store.create_run(experiment, "bench", int(time.time() * 1e3), [], None).info.run_id


def _fill(store: SqlAlchemyStore, ids: list[str], length: int) -> None:
    """The rows that log_batch would write, by one statement a run."""
    insert = text(
        "INSERT INTO metrics (key, value, timestamp, run_uuid, step, is_nan) "
        "SELECT 'train_loss', random(), 1700000000000 + n, :run, n, false FROM generate_series(1, :length) n"
    )
    with store.engine.begin() as connection:
        for run_id in ids:
            connection.execute(insert, {"run": run_id, "length": length})
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE metrics"))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
