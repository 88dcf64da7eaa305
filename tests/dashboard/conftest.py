"""What do the tests of the window share? A real API with a comparison in it, the dashboard's server, and Chromium."""

import math
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from client import RotBench, Run
from deploy.local.ports import any_free_port
from rotrnn_core.config import RunConfig
from rotrnn_core.records import STATISTICS, Divergence, HiddenNorms, Started
from store import ingest, leases, tokens
from store.engine import make_engine, session_factory
from store.status import FailureClass, Status

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parents[2]
TOKEN = "a token for the window"
CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
STEPS = 200
CELLS = [{"name": "rotrnn"}, {"name": "lru"}, {"name": "lru", "normaliser": "tied"}]
LEVELS = {"rotrnn": 0.02, "lru-learned": 0.9, "lru-tied": 0.3}
"""How far ln(relative norm) of each cell moves in training."""
LOST = ("lru-learned", 2, 1)
"""The run that diverges: cell, depth, seed."""


@dataclass
class Service:
    """A real API on its own database, and the store's own way of playing the worker."""

    url: str
    database_url: str
    process: "subprocess.Popen[bytes] | None" = None

    @cached_property
    def bench(self) -> RotBench:
        return RotBench(self.url, TOKEN)

    @cached_property
    def engine(self) -> Any:
        return make_engine(self.database_url, application_name="tests", pool_size=1)

    @property
    def environment(self) -> dict[str, str]:
        return {"ROTBENCH_URL": self.url, "ROTBENCH_TOKEN": TOKEN}

    def start(self) -> None:
        """Start the API and wait until it answers."""
        port = self.url.rsplit(":", 1)[1]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "api.main:app", "--port", port, "--log-level", "warning"],
            cwd=ROOT,
            env=os.environ | {"ROTBENCH_DATABASE_URL": self.database_url},
        )
        wait_for(f"{self.url}/livez")

    def stop(self) -> None:
        """End the API, as a crash would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def train(self, run_id: str, *, share: float = 1.0, status: str | None = Status.SUCCEEDED) -> None:
        """Play the worker: claim, write curves, norms and a log up to a share of the steps, and end; None: leave it."""
        run = self.bench.run(run_id)
        with session_factory(self.engine)() as session:
            claim = leases.claim(session, UUID(run_id), worker_id="desk:cpu", lease_s=600, host="desk", device="cpu")
            assert claim is not None
            last = round(STEPS * share)
            started = Started(0, STEPS, 31_337, "cpu", (1, 10), {"torch": "2", "python": "3"})
            logs = [
                (n, datetime.now(UTC) + timedelta(seconds=n), "info", f"step {10 * n}: **bold** <b>{n}</b>")
                for n in range(1, last // 10 + 1)
            ]
            norms = [record for step in range(0, last + 1, 20) for record in norms_of(run, step)]
            batch = ingest.Batch(metrics_of(run, last), norms, logs, step=last, started=started)
            ingest.write(session, UUID(run_id), claim.attempt, claim.token, batch)
            if status is not None:
                leases.finish(
                    session,
                    UUID(run_id),
                    claim.attempt,
                    claim.token,
                    status=Status(status),
                    failure_class=FailureClass.OUT_OF_MEMORY if status == Status.FAILED else None,
                    reason="tried to get <i>2 GiB</i>" if status == Status.FAILED else None,
                    divergence=Divergence(last, 1, "activation") if status == Status.DIVERGED else None,
                )
            session.commit()


def norms_of(run: Any, step: int) -> list[HiddenNorms]:
    """The trace of one step: a saturating course per cell, layer and seed; the lost run ends in NaN and infinity."""
    lost = (run.cell, run.depth, run.seed) == LOST and step >= 160
    growth = [
        LEVELS[run.cell] * (1 + 0.2 * layer) * (1 + 0.1 * (run.seed - 1)) * (1 - math.exp(-step / 60))
        for layer in range(run.depth)
    ]
    records = []
    for statistic in STATISTICS:
        base = {"relative": 1.0, "per_head": 0.9, "whole": 4.0}[statistic]
        mean = tuple(base * math.exp(value) for value in growth)
        if lost:
            mean = (mean[0] * 3, *(math.nan for _ in mean[1:]))
        records.append(
            HiddenNorms(
                step=step,
                statistic=statistic,
                mean=mean,
                deviation=tuple(0.1 for _ in mean),
                minimum=tuple(0.8 * value for value in mean),
                maximum=tuple(1.3 * value for value in mean),
                non_finite=tuple(0 if math.isfinite(value) else 7 for value in mean),
                profile=tuple((value, value) for value in mean),
            )
        )
    return records


def metrics_of(run: Any, last: int) -> list[tuple[str, int, float]]:
    """Curves that fall and rise as curves do; the lost run ends in NaN and infinity."""
    lost = (run.cell, run.depth, run.seed) == LOST
    rows: list[tuple[str, int, float]] = []
    for step in range(10, last + 1, 10):
        done = step / STEPS
        wave = 0.04 * math.sin(step * (1 + run.seed) / 17)
        rows += [
            ("train_loss", step, 2.3 * math.exp(-done) + wave),
            ("train_accuracy", step, 0.1 + 0.35 * done + wave),
            ("learning_rate", step, 3e-3 * math.cos(done * math.pi / 2)),
            ("recurrence_learning_rate", step, 1e-3 * math.cos(done * math.pi / 2)),
            ("gradient_norm", step, math.exp(wave * 10 - done)),
        ]
        if step % 50 == 0:
            rows += [
                ("validation_loss", step, 2.35 * math.exp(-done)),
                ("validation_accuracy", step, 0.1 + 0.34 * done),
            ]
    if lost:
        rows = [(key, step, math.nan if step == last and "loss" in key else value) for key, step, value in rows]
    if last == STEPS:
        rows += [("test_loss", last, 0.9), ("test_accuracy", last, 0.45 + 0.01 * run.seed)]
    return rows


def wait_for(url: str, timeout_s: float = 60.0) -> None:
    """Wait until an address answers."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            urllib.request.urlopen(url, timeout=2).close()
            return
        except OSError:
            assert time.monotonic() < deadline, f"{url} did not answer in {timeout_s:g} s"
            time.sleep(0.1)


@pytest.fixture(scope="session")
def make_service(make_database: Callable[[], str]) -> Iterator[Callable[[], Service]]:
    """A function that starts an API on a fresh database."""
    made: list[Service] = []

    def make() -> Service:
        service = Service(f"http://127.0.0.1:{any_free_port()}", make_database())
        with session_factory(service.engine)() as session:
            tokens.ensure(session, "tests", TOKEN)
            session.commit()
        service.start()
        made.append(service)
        return service

    yield make
    for service in made:
        service.stop()
        service.engine.dispose()


@pytest.fixture(scope="session")
def empty_service(make_service: Callable[[], Service]) -> Service:
    """An API without a single run."""
    return make_service()


@pytest.fixture(scope="session")
def scratch_service(make_service: Callable[[], Service]) -> Service:
    """An API for tests that make sweeps: a sweep stays, and pages open the newest by themselves."""
    return make_service()


@pytest.fixture(scope="session")
def service(make_service: Callable[[], Service]) -> Service:
    """An API with a finished comparison (one run of it diverged), a failed run, a half-done one and a queued one."""
    made = make_service()
    base = {"model": {"d_model": 16, "d_state": 16}, "training": {"steps": STEPS, "warmup_steps": 20}}
    grid = {"model.cell": CELLS, "model.n_layers": [1, 2], "training.seed": [0, 1, 2]}
    sweep = made.bench.sweep(base, grid, name="seeds and depths")
    for run in made.bench.runs(sweep_id=sweep.id):
        lost = (run.cell, run.depth, run.seed) == LOST
        made.train(run.id, share=0.8 if lost else 1.0, status=Status.DIVERGED if lost else Status.SUCCEEDED)
    single = base | {"training": {"steps": STEPS, "warmup_steps": 20, "seed": 7}}
    made.train(made.bench.submit(single, name="<img src=x> *too large*").id, share=0.3, status=Status.FAILED)
    made.train(made.bench.submit(single, name="half-way").id, share=0.5, status=None)
    made.bench.submit(single, name="waiting")
    return made


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Service], str]]:
    """A function that starts the dashboard on a service and returns its address; one per service."""
    started: dict[str, tuple[str, subprocess.Popen[bytes]]] = {}

    def start(service: Service) -> str:
        if service.url not in started:
            port = any_free_port()
            log = (tmp_path_factory.mktemp("dashboard") / "log").open("wb")
            process = subprocess.Popen(
                [sys.executable, "-m", "streamlit", "run", "dashboard/app.py", "--server.port", str(port)],
                cwd=ROOT,
                env=os.environ | service.environment,
                stdout=log,
                stderr=log,
            )
            started[service.url] = (f"http://127.0.0.1:{port}", process)
            wait_for(f"http://127.0.0.1:{port}/_stcore/health")
        return started[service.url][0]

    yield start
    for _, process in started.values():
        process.terminate()
        process.wait(timeout=20)


@pytest.fixture(scope="session")
def chromium() -> "Iterator[Browser]":
    """Debian's Chromium, started once."""
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not there: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS.split())
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: "Browser") -> "Iterator[Callable[..., Page]]":
    """A function that opens an address in a fresh window, wide and light."""
    contexts = []

    def opened(url: str) -> "Page":
        context = chromium.new_context(viewport={"width": 1440, "height": 900}, timezone_id="Europe/Paris")
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(180_000)
        page.goto(url)
        page.get_by_role("heading", level=1).first.wait_for()
        return page

    yield opened
    for context in contexts:
        context.close()


def opened_script(home: str) -> None:
    """What AppTest runs in place of the entry."""
    from dashboard.pages import open_chosen

    open_chosen(home)


@pytest.fixture
def open_at(monkeypatch: pytest.MonkeyPatch) -> "Callable[..., AppTest]":
    """A function that opens a page of the dashboard of a service, with choices from its address, wholly drawn."""
    from streamlit.testing.v1 import AppTest

    from dashboard import connection, live

    monkeypatch.setattr(live, "painted", lambda key: True)

    def opened(service: Any, home: str = "stability", *, token: str | None = None, **address: str) -> AppTest:
        for name, value in service.environment.items():
            monkeypatch.setenv(name, value)
        if token is not None:
            monkeypatch.setenv("ROTBENCH_TOKEN", token)
        connection.line.clear()
        page = AppTest.from_function(opened_script, kwargs={"home": home}, default_timeout=120)
        for name, value in address.items():
            page.query_params[name] = value
        page.run()
        assert not page.exception
        return page

    return opened


@pytest.fixture
def run() -> Callable[..., Run]:
    """A function that makes a run as the client gives it: by default one that has succeeded in 100 s."""
    noon = datetime(2026, 7, 1, 12, tzinfo=UTC)

    def made(cell: Any = "rotrnn", depth: int = 1, seed: int = 0, status: str = "succeeded", **changed: Any) -> Run:
        config = RunConfig.from_dict({"model": {"cell": cell, "n_layers": depth}, "training": {"seed": seed}})
        fields: dict[str, Any] = {
            "id": f"{config.model.cell.label}-{depth}-{seed}",
            "name": None,
            "sweep_id": None,
            "status": status,
            "failure_class": None,
            "reason": None,
            "config": config.to_dict(),
            "config_hash": "",
            "cell": config.model.cell.label,
            "task": "listops-short",
            "depth": depth,
            "seed": seed,
            "step": 200,
            "total_steps": 200,
            "attempt": 1,
            "priority": "normal",
            "created_at": noon,
            "queued_at": noon,
            "started_at": noon,
            "finished_at": noon + timedelta(seconds=100),
            "parameter_count": None,
            "device": None,
            "divergence": None,
            "seconds_left": None,
            "latest": {"test_accuracy": 0.1 * seed + 0.2},
        }
        return Run(**(fields | changed))

    return made
