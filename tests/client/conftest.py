"""What do the tests of the client share? The real API on a real database, and the store's way of playing a worker."""

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
import uvicorn
from sqlalchemy import text
from sqlalchemy.orm import Session, sessionmaker
from typer.testing import CliRunner, Result

from api.app import create_app
from api.settings import Settings
from client import RotBench
from client.cli import output
from client.cli.app import app as commands
from rotrnn_core.records import STATISTICS, Checkpoint, Divergence, HiddenNorms, Started
from store import ingest, leases, tokens, workers
from store.engine import make_engine, session_factory
from store.status import FailureClass, Status

TOKEN = "a-token-for-the-tests"
SMALL = {
    "model": {"d_model": 8, "d_state": 8, "cell": {"name": "rotrnn", "n_heads": 2}},
    "training": {"steps": 20, "warmup_steps": 2},
}
CELLS = [{"name": "rotrnn", "n_heads": 2}, {"name": "lru", "normaliser": "learned"}]


@dataclass
class Service:
    """The API at an address, and what a worker would do to its database."""

    url: str
    sessions: sessionmaker[Session]

    def client(self) -> RotBench:
        return RotBench(self.url, TOKEN)

    def rotbench(self, *arguments: str, width: int | None = None) -> Result:
        """What the command line says; in a terminal of `width` columns, or piped."""
        environment = {"ROTBENCH_URL": self.url, "ROTBENCH_TOKEN": TOKEN}
        environment |= {"FORCE_COLOR": "1", "TERM": "xterm"} if width else {}
        output.out.width = output.err.width = width or 80
        return CliRunner(env=environment).invoke(commands, list(arguments))

    def train(
        self,
        run_id: str,
        *,
        relative: Mapping[int, Sequence[float]] | None = None,
        metrics: Sequence[tuple[str, int, float]] = (),
        logs: Sequence[str] = (),
        status: Status | None = Status.SUCCEEDED,
        reason: str | None = None,
    ) -> None:
        """Claim the run, write what a worker would write, and end it; status None leaves it running."""
        with self.sessions() as session:
            claim = leases.claim(session, UUID(run_id), worker_id="w", lease_s=600, host="box", device="cpu")
            assert claim is not None
            batch = ingest.Batch(
                metrics=metrics,
                hidden_norms=[
                    norms_of(step, statistic, mean)
                    for step, mean in (relative or {}).items()
                    for statistic in STATISTICS
                ],
                logs=[(number, datetime.now(UTC), "info", line) for number, line in enumerate(logs)],
                checkpoints=[Checkpoint(10, "runs/x/step-00000010.pt", "ab" * 32, 2048)] if logs else (),
                step=max((step for _, step, _ in metrics), default=None),
                started=Started(0, claim.total_steps, 1234, "cpu", (0, 1), {"torch": "none"}),
            )
            ingest.write(session, claim.run_id, claim.attempt, claim.token, batch)
            if status is not None:
                leases.finish(
                    session,
                    claim.run_id,
                    claim.attempt,
                    claim.token,
                    status=status,
                    failure_class=FailureClass.CODE_ERROR if status is Status.FAILED else None,
                    reason=reason,
                    divergence=Divergence(15, 0, "activation") if status is Status.DIVERGED else None,
                )
            session.commit()


def norms_of(step: int, statistic: str, mean: Sequence[float]) -> HiddenNorms:
    """A record whose other entries follow from its means."""
    return HiddenNorms(
        step=step,
        statistic=statistic,  # type: ignore[arg-type]
        mean=tuple(mean),
        deviation=tuple(0.5 for _ in mean),
        minimum=tuple(value / 2 for value in mean),
        maximum=tuple(value * 2 for value in mean),
        non_finite=tuple(0 if math.isfinite(value) else 3 for value in mean),
        profile=tuple((value, value) for value in mean),
    )


@pytest.fixture(scope="session")
def open_service(make_database: Callable[[], str]) -> Iterator[Callable[[], Service]]:
    """A function that serves the API on a fresh database."""
    opened: list[tuple[uvicorn.Server, threading.Thread]] = []
    engines = []

    def make() -> Service:
        url = make_database()
        server = uvicorn.Server(
            uvicorn.Config(
                create_app(Settings(database_url=url, lease_s=3600)), port=0, log_level="error", lifespan="on"
            )
        )
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        opened.append((server, thread))
        engine = make_engine(url, application_name="tests", pool_size=2)
        engines.append(engine)
        sessions = session_factory(engine)
        with sessions() as session:
            tokens.ensure(session, "tests", TOKEN)
            session.commit()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        return Service(f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", sessions)

    yield make
    for server, thread in opened:
        server.should_exit = True
        thread.join(10)
    for engine in engines:
        engine.dispose()


@pytest.fixture(scope="session")
def writable(open_service: Callable[[], Service]) -> Service:
    """The API that the writing tests share."""
    return open_service()


@pytest.fixture
def fresh(writable: Service) -> Service:
    """The API on a database in which nothing was ever submitted."""
    with writable.sessions() as session:
        kept = {"tokens", "alembic_version"}
        tables = session.scalars(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"))
        session.execute(text(f"TRUNCATE {', '.join(set(tables) - kept)} CASCADE"))
        session.commit()
    return writable


@dataclass(frozen=True)
class Seeded:
    """A service with a sweep that ended, and with single runs in every state a reader meets."""

    service: Service
    sweep_id: str
    diverged: str
    failed: str
    running: str
    queued: str


@pytest.fixture(scope="session")
def seeded(open_service: Callable[[], Service]) -> Seeded:
    """A service that the reading tests share; nothing in it is changed by them."""
    service = open_service()
    with service.client() as client:
        grid = {"model.cell": CELLS, "model.n_layers": [1, 2], "training.seed": [0, 1, 2]}
        sweep = client.sweep(SMALL, grid, name="stability")
        for run in client.runs(sweep_id=sweep.id):
            service.train(run.id, relative=trace(run.cell, run.depth, run.seed), metrics=curve(run.seed))
        other = {**SMALL, "training": {"steps": 20, "warmup_steps": 2, "seed": 7}}
        ids = {name: client.submit(other, name=name).id for name in ("diverged", "failed", "running", "queued")}
    service.train(
        ids["diverged"],
        relative={0: [1.0, 1.0], 10: [math.inf, math.nan]},
        metrics=[("train_loss", 1, 2.3), ("train_loss", 10, math.nan), ("train_loss", 11, math.inf)],
        status=Status.DIVERGED,
    )
    service.train(ids["failed"], status=Status.FAILED, reason="ValueError: [red] is no number", logs=["one", "two"])
    service.train(ids["running"], metrics=[("train_loss", 5, 1.5)], status=None)
    with service.sessions() as session:
        workers.beat(
            session,
            "box:cpu",
            host="box",
            device="cpu",
            device_uuid="box:cpu",
            pid=1,
            run_id=None,
            environment={},
            stale_s=60,
        )
        session.commit()
    return Seeded(service, sweep.id, **ids)


def trace(cell: str, depth: int, seed: int) -> dict[int, list[float]]:
    """RotRNN's norm stays within 4% of 1; LRU's doubles and more, in each layer more."""
    pace = 0.02 if cell == "rotrnn" else 0.8
    return {
        step: [math.exp((pace * (layer + 1) + 0.01 * seed) * step / 20) for layer in range(depth)]
        for step in (0, 10, 20)
    }


def curve(seed: int) -> list[tuple[str, int, float]]:
    """Losses and accuracies as a trainer reports them."""
    ends = [("validation_accuracy", 20, 0.4), ("test_accuracy", 20, 0.4 + 0.01 * seed)]
    return [*(("train_loss", step, 2.3 - 0.05 * step) for step in (1, 10, 20)), *ends]


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder without an API in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in ("ROTBENCH_URL", "ROTBENCH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path
