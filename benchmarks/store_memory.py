"""How much memory do a long export and a large deletion take? That of an API process, above what it holds idle."""

import os
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx2
import numpy as np
import psutil

from api.export_formats import FORMATS
from benchmarks.store_bench import TOKEN, Bench
from store import ingest

LOOK_S = 0.02


@dataclass(frozen=True)
class Serving:
    """An API process that has answered each kind of question once."""

    http: httpx2.Client
    process: psutil.Process

    def above_idle_mb(self, work: Callable[[], object]) -> float:
        """The most that the process grows by while the work is done, looked at all the time."""
        idle = most = self.process.memory_info().rss
        done = threading.Event()

        def look() -> None:
            nonlocal most
            while not done.wait(LOOK_S):
                most = max(most, self.process.memory_info().rss)

        looking = threading.Thread(target=look)
        looking.start()
        try:
            work()
        finally:
            done.set()
            looking.join()
        return (most - idle) / 1e6

    def drained(self, kind: str, **filters: int) -> tuple[int, int]:
        """Lines and bytes of a whole export of train_loss, thrown away as it comes."""
        lines = size = 0
        query: dict[str, str | int] = {"key": "train_loss", "cell": "lru-learned", **filters}
        with self.http.stream("GET", f"/v1/export/metrics.{kind}", params=query) as answer:
            assert answer.status_code == 200
            for piece in answer.iter_bytes():
                lines += piece.count(b"\n")
                size += len(piece)
        return lines, size


def exported(bench: Bench) -> dict[str, float]:
    """A million points as each kind of file."""
    each = bench.size.exported // 10
    for seed in range(10):
        _long_run(bench, each, 5_000 + seed, depth=5)
    found: dict[str, float] = {"export_rows": 10.0 * each}
    with _served(bench) as api:
        for kind in FORMATS:
            api.drained(kind, depth=2, seed=5_000)
            lasted: list[float] = []

            def work(kind: str = kind, lasted: list[float] = lasted) -> None:
                began = time.perf_counter()
                lines, _ = api.drained(kind, depth=5)
                lasted.append(time.perf_counter() - began)
                assert kind == "parquet" or lines - (kind == "csv") == 10 * each

            found[f"export_{kind}_above_idle_mb"] = api.above_idle_mb(work)
            found[f"export_{kind}_rows_per_s"] = 10 * each / lasted[0]
    return found


def deleted(bench: Bench) -> dict[str, float]:
    """A run of a million points goes while others ask for a page of runs."""
    run_id = _long_run(bench, bench.size.exported, 6_000, depth=6)
    times: dict[bool, list[float]] = {False: [], True: []}
    gone, over = threading.Event(), threading.Event()
    with _served(bench) as api:

        def ask() -> None:
            while not over.is_set():
                going, began = gone.is_set(), time.perf_counter()
                assert api.http.get("/v1/runs?limit=50").status_code == 200
                times[going].append(time.perf_counter() - began)

        asking = threading.Thread(target=ask)
        asking.start()
        time.sleep(3)
        gone.set()
        began = time.perf_counter()

        def delete() -> None:
            assert api.http.delete(f"/v1/runs/{run_id}").status_code == 204

        grown = api.above_idle_mb(delete)
        lasted = time.perf_counter() - began
        over.set()
        asking.join()
    return {
        "delete_rows": float(bench.size.exported),
        "delete_s": lasted,
        "delete_above_idle_mb": grown,
        "page_before_delete_ms": 1e3 * statistics.median(times[False]),
        "page_during_delete_ms": 1e3 * statistics.median(times[True]),
        "page_during_delete_worst_ms": 1e3 * max(times[True]),
    }


def _long_run(bench: Bench, length: int, seed: int, *, depth: int) -> str:
    claim = bench.claimed(length, seed, depth=depth)
    values = np.random.default_rng(seed).normal(size=length).tolist()
    for start in range(0, length, 10_000):
        some = values[start : start + 10_000]
        points = [("train_loss", start + n + 1, value) for n, value in enumerate(some)]
        bench.write(claim, ingest.Batch(metrics=points))
    bench.finish(claim)
    return str(claim.run_id)


@contextmanager
def _served(bench: Bench) -> Iterator[Serving]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "api.main:app", "--port", str(port), "--log-level", "warning"]
    server = subprocess.Popen(command, env=os.environ | {"ROTBENCH_DATABASE_URL": bench.url})
    headers = {"Authorization": f"Bearer {TOKEN}"}
    try:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=600) as http:
            api = Serving(http, psutil.Process(server.pid))
            deadline = time.monotonic() + 60
            while True:
                try:
                    assert http.get("/readyz").status_code == 200
                    break
                except httpx2.TransportError:
                    assert server.poll() is None
                    assert time.monotonic() < deadline
                    time.sleep(0.1)
            for _ in range(20):
                assert http.get("/v1/runs?limit=50").status_code == 200
            yield api
    finally:
        server.terminate()
        server.wait(60)
