"""On what are numbers measured? A fresh Postgres in a folder, the API on it, and a worker's way of writing."""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from fastapi.testclient import TestClient
from sqlalchemy import text
from sqlalchemy.orm import Session, sessionmaker

from api.app import create_app
from api.expansion import checked
from api.settings import Settings
from deploy.local.servers import EmbeddedPostgres
from rotrnn_core import records
from store import ingest, runs, tokens
from store.engine import make_engine, session_factory
from store.migrate import migrate
from store.runs import NewRun
from store.status import Status

TOKEN = "a token of the benchmark"
LINES = 12
ROUNDS = 5
CONFIG = dict(checked({"task": {"name": "listops-short"}, "training": {"steps": 100, "warmup_steps": 0}}).config)


@dataclass(frozen=True)
class Size:
    """How much of everything."""

    length: int = 100_000
    ingest_lines: int = 20_000
    mlflow_points: int = 10_000
    listed: int = 10_000
    recorded: int = 10_000
    exported: int = 1_000_000


QUICK = Size(10_000, 2_000, 3_000, 1_000, 1_000, 50_000)


@dataclass(frozen=True)
class Bench:
    """A migrated database and the API on it."""

    url: str
    sessions: sessionmaker[Session]
    http: TestClient
    size: Size

    def claimed(self, total_steps: int, seed: int, cell: str = "lru-learned", depth: int = 2) -> runs.Claim:
        """A run whose training has begun."""
        new = NewRun(CONFIG, f"{cell}{depth}{seed}", cell, "listops", depth, seed, total_steps)
        with self.sessions() as session:
            (run_id,) = runs.add_many(session, [new])
            claim = runs.claim(session, run_id, worker_id="w", lease_s=3600, host="h", device="cpu")
            assert claim is not None
            started = records.Started(0, total_steps, 1, "cpu", tuple(range(1, 65)), {})
            ingest.write(session, run_id, claim.attempt, claim.token, ingest.Batch(started=started))
            session.commit()
        return claim

    def write(self, claim: runs.Claim, batch: ingest.Batch) -> None:
        """A batch in a transaction of its own."""
        with self.sessions.begin() as session:
            ingest.write(session, claim.run_id, claim.attempt, claim.token, batch)

    def finish(self, claim: runs.Claim) -> None:
        """The end of the run."""
        with self.sessions.begin() as session:
            runs.finish(session, claim.run_id, claim.attempt, claim.token, status=Status.SUCCEEDED)

    def settle(self) -> None:
        """What autovacuum does by and by."""
        with self.sessions() as session:
            session.connection(execution_options={"isolation_level": "AUTOCOMMIT"}).execute(text("VACUUM ANALYZE"))

    def processor_s(self) -> float:
        """Processor time spent so far by this process and by Postgres: a busy machine does not lengthen it."""
        with self.sessions() as session:
            backend = session.execute(text("SELECT pg_backend_pid()")).scalar_one()
        server = psutil.Process(backend).parent()
        assert server is not None
        ended = server.cpu_times()
        spent = time.process_time() + ended.children_user + ended.children_system
        for process in server.children():
            now = process.cpu_times()
            spent += now.user + now.system
        return spent

    def get(self, path: str, **query: Any) -> Any:
        """An answer of the API."""
        answer = self.http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer


def median_s(work: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Seconds on the wall's clock, the median; the first time is not counted."""
    work()
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def processor_s(bench: Bench, work: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Processor seconds of this process and of Postgres, the mean."""
    work()
    before = bench.processor_s()
    for _ in range(rounds):
        work()
    return (bench.processor_s() - before) / rounds


@contextmanager
def opened(folder: Path, size: Size) -> Iterator[Bench]:
    """A fresh database in the folder and the API on it."""
    with EmbeddedPostgres(folder / "postgres") as server:
        url = server.url
        migrate(url)
        engine = make_engine(url, application_name="benchmark", statement_timeout_s=600.0)
        sessions = session_factory(engine)
        with sessions.begin() as session:
            tokens.ensure(session, "benchmark", TOKEN)
        app = create_app(Settings(database_url=url))
        with TestClient(app, headers={"Authorization": f"Bearer {TOKEN}"}) as http:
            yield Bench(url, sessions, http, size)
        engine.dispose()
