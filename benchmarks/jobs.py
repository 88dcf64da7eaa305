"""How fast is the way of a run: accepted, claimed, begun, recovered, and what does watching over it cost?

    python benchmarks/jobs.py
    python benchmarks/jobs.py --json --only submits queries

Servers of its own, in a temporary folder. Beat 0.3 s and lease 2.5 s, unless --default-lease is given.
"""

import argparse
import contextlib
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])  # beside this file lies a store.py that would hide the package

import httpx2
import psutil
from sqlalchemy import delete, text, update
from sqlalchemy.orm import Session, sessionmaker

from deploy.local import ports
from deploy.local.servers import EmbeddedPostgres, EmbeddedRedis
from store import outbox, runs, sweeps, tokens
from store.engine import make_engine, session_factory
from store.migrate import migrate
from store.runs import Filters, NewRun
from store.status import Status
from store.tables import OutboxRow, RunRow, SweepRow
from worker import logs
from worker.devices import Device
from worker.settings import WorkerSettings
from worker.supervisor import Supervisor

ROOT = Path(__file__).parents[1]
SHORT = {"BEAT_S": "0.3", "LEASE_S": "2.5", "INGEST_S": "0.05", "REAP_INTERVAL_S": "0.2", "DISPATCH_INTERVAL_S": "0.1"}
SUBMITS = 1500
CONFIG: dict[str, Any] = {
    "task": {"name": "listops-short", "train_size": 64, "validation_size": 8, "test_size": 8},
    "model": {"cell": {"name": "rotrnn", "n_heads": 2}, "d_model": 8, "d_state": 8, "n_layers": 1},
    "training": {
        "steps": 20_000, "batch_size": 4, "log_every": 1, "evaluate_every": 20_000, "checkpoint_every": 50,
        "device": "cpu",
    },
    "probe": {"every": 20_000, "batch_size": 4, "positions": 8},
}  # fmt: skip


@dataclass
class Site:
    """Servers, and processes that end with the block."""

    folder: Path
    postgres: EmbeddedPostgres
    redis: EmbeddedRedis
    sessions: sessionmaker[Session]
    settings: dict[str, str]
    children: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, *command: str, **settings: str) -> subprocess.Popen[bytes]:
        own = {
            "DATABASE_URL": self.postgres.url,
            "BROKER_URL": self.redis.url,
            "ARTIFACTS": str(self.folder / "artifacts"),
            "DATA_DIR": str(self.folder / "datasets"),
            "TRAINER_THREADS": "1",
            **self.settings,
            **settings,
        }
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **{f"ROTBENCH_{name}": own[name] for name in own}}
        with (self.folder / "log").open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", *command], cwd=ROOT, env=environment, stdout=log, stderr=log
            )
        self.children.append(child)
        return child

    def start_worker(self, device: str) -> subprocess.Popen[bytes]:
        """A worker with a spool of its own, as on a host of its own; it has registered when this returns."""
        command = ["celery", "-A", "worker.app", "worker", "--pool", "prefork", "-c", "1", "--without-gossip"]
        spool = str(self.folder / device)
        child = self.start(*command, "--without-mingle", "--hostname", f"{device}@%h", DEVICE=device, SPOOL_DIR=spool)
        wait(lambda: f"device={device} " in (self.folder / "log").read_text(errors="replace"))
        return child

    def run(self, run_id: UUID) -> RunRow:
        with self.sessions() as session:
            return runs.get(session, run_id)

    def submit(self, steps: int = 20_000) -> UUID:
        config = CONFIG | {"training": CONFIG["training"] | {"steps": steps}}
        with self.sessions.begin() as session:
            return runs.add_many(session, [NewRun(config, "h", "rotrnn", "listops-short", 1, 0, steps)])[0]

    def postgres_cpu_s(self) -> float:
        server = psutil.Process(int((self.postgres.cluster / "postmaster.pid").read_text().split()[0]))
        return sum(sum(process.cpu_times()[:2]) for process in [server, *server.children()])


@contextlib.contextmanager
def site(settings: dict[str, str]) -> Iterator[Site]:
    """A migrated database, a broker, and nothing started yet."""
    with tempfile.TemporaryDirectory(prefix="rotbench-jobs-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with EmbeddedPostgres(folder / "postgres") as postgres, EmbeddedRedis(folder / "redis") as redis:
            migrate(postgres.url)
            engine = make_engine(postgres.url, application_name="benchmark", statement_timeout_s=0)
            opened = Site(folder, postgres, redis, session_factory(engine), settings)
            try:
                yield opened
            finally:
                for child in opened.children:
                    for process in (
                        [*psutil.Process(child.pid).children(recursive=True), child] if _alive(child) else []
                    ):
                        process.kill()
                engine.dispose()


def _alive(child: subprocess.Popen[bytes]) -> bool:
    return child.poll() is None


def wait(look: Callable[[], object], within_s: float = 300.0) -> float:
    """When `look` first said yes."""
    deadline = time.monotonic() + within_s
    while not look():
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing happened in {within_s:g} s")
        time.sleep(0.005)
    return time.monotonic()


def median_ms(deed: Callable[[], Any], times: int = 30) -> float:
    """Median duration of a deed, after one that does not count."""
    deed()
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        deed()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1000


def recovery(settings: dict[str, str]) -> dict[str, float]:
    """From kill -9 of a worker until another one, elsewhere, holds its run, and until that one trains."""
    with site(settings) as here:
        here.start("worker.dispatcher")
        first = here.start_worker("cpu:0")
        run_id = here.submit(10_000_000)  # it must not end while the other worker starts, however slow the machine is
        wait(lambda: here.run(run_id).step > 60)
        here.start_worker("cpu:1")
        first.kill()
        killed_at = time.monotonic()
        assert here.run(run_id).status is Status.RUNNING
        claimed_at = wait(lambda: here.run(run_id).attempt == 2)
        trained_at = wait(lambda: here.run(run_id).step > 60 and _begun(here, run_id, 2))
        return {"recovery_s": claimed_at - killed_at, "recovery_to_training_s": trained_at - killed_at}


def _begun(here: Site, run_id: UUID, attempt: int) -> bool:
    begun = text("SELECT training_started_at IS NOT NULL FROM attempts WHERE run_id = :run AND number = :number")
    with here.sessions() as session:
        return bool(session.scalar(begun, {"run": run_id, "number": attempt}))


def first_step(settings: dict[str, str]) -> dict[str, float]:
    """From the submission to the first step in the store, on an idle worker; the import of torch apart."""
    imports = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import torch"], check=True)
        imports.append(time.perf_counter() - began)
    with site(settings) as here:
        here.start("worker.dispatcher")
        here.start_worker("cpu:0")
        taken = []
        for _ in range(4):
            began = time.monotonic()
            run_id = here.submit()
            taken.append(wait(lambda run_id=run_id: here.run(run_id).step >= 1) - began)
            with here.sessions.begin() as session:
                runs.request_cancel(session, run_id)
            wait(lambda run_id=run_id: here.run(run_id).status is Status.CANCELLED)
    found, torch_s = statistics.median(taken[1:]), statistics.median(imports)
    return {
        "submit_to_first_step_s": found,
        "import_torch_s": torch_s,
        "submit_to_first_step_less_torch_s": found - torch_s,
    }


def submits(settings: dict[str, str]) -> dict[str, float]:
    """Accepted submissions per second by one API process, one by one and as sweeps of 5,000 runs."""
    with site(settings) as here:
        with here.sessions.begin() as session:
            tokens.ensure(session, "benchmark", "t")
        port = ports.next_free_port(8700)
        arguments = ["--host", ports.LOOPBACK, "--port", str(port), "--log-level", "warning", "--no-access-log"]
        api = psutil.Process(here.start("uvicorn", "api.main:app", *arguments).pid)
        address = f"http://{ports.LOOPBACK}:{port}"
        wait(lambda: _answers(address))
        _submit_singly(port, 16, 100)
        before = sum(api.cpu_times()[:2]), here.postgres_cpu_s()
        single_s, client_cpu_s = _submit_singly(port, 16, SUBMITS)
        single_cpu_s, postgres_cpu_s = sum(api.cpu_times()[:2]) - before[0], here.postgres_cpu_s() - before[1]
        grid = {
            "model.cell": [{"name": "rotrnn"}, {"name": "lru"}],
            "model.n_layers": [1, 2, 3, 4, 6],
            "training.seed": list(range(500)),
        }
        with _client(address) as client:
            rates, busy_s = [], sum(api.cpu_times()[:2])
            for _ in range(3):
                began = time.perf_counter()
                answer = client.post("/v1/sweeps", json={"config": CONFIG | {"model": {}}, "grid": grid})
                rates.append(5_000 / (time.perf_counter() - began))
                answer.raise_for_status()
            sweep_cpu_s = sum(api.cpu_times()[:2]) - busy_s
    return {
        "submits_per_s": SUBMITS / single_s,
        "submit_api_cpu_ms": single_cpu_s / SUBMITS * 1000,
        "submit_postgres_cpu_ms": postgres_cpu_s / SUBMITS * 1000,
        "submit_client_cpu_ms": client_cpu_s / SUBMITS * 1000,
        "sweep_runs_per_s": statistics.median(rates),
        "sweep_run_api_cpu_us": sweep_cpu_s / 15_000 * 1e6,
    }


def _client(address: str) -> httpx2.Client:
    return httpx2.Client(base_url=address, headers={"Authorization": "Bearer t"}, timeout=120, trust_env=False)


def _answers(address: str) -> bool:
    with contextlib.suppress(httpx2.TransportError):
        return httpx2.get(f"{address}/readyz", trust_env=False).status_code == 200
    return False


def _submit_singly(port: int, connections: int, number: int) -> tuple[float, float]:
    """Seconds on the wall's clock, and of the client's processor."""
    command = [sys.executable, str(Path(__file__).with_name("jobs_client.py")), *map(str, (port, connections, number))]
    done = subprocess.run(command, input=json.dumps({"config": CONFIG}).encode(), stdout=subprocess.PIPE, check=True)
    wall_s, cpu_s = map(float, done.stdout.split())
    return wall_s, cpu_s


STEPS = 1500
LOOP = f"""
import argparse, sys, time
from rotrnn_core.records import Finished, Loss
from worker.trainer import Pipe
parser = argparse.ArgumentParser()
parser.add_argument("--messages", type=int)
parser.add_argument("--parent", type=int)
given = parser.parse_args()
pipe = Pipe(given.messages) if given.messages else None
def work(n):
    for _ in range(n): pass
n = 1000
while True:
    began = time.perf_counter(); work(n); took = time.perf_counter() - began
    if took > .02: break
    n *= 2
n = int(open(sys.path[0] + "/n").read()) if given.messages else int(n * .002 / took)
open(sys.path[0] + "/n", "w").write(str(n))
began, busy = time.perf_counter(), time.process_time()
for step in range(1, {STEPS} + 1):
    work(n)
    if pipe: pipe.send(Loss(step, 1.0, .5, .1, .1, 1.0, 1000.0))
took = time.perf_counter() - began, time.process_time() - busy
open(sys.path[0] + "/took", "w").write("%r %r" % took)
if pipe: pipe.send(Finished({STEPS}))
"""


def overhead(settings: dict[str, str]) -> dict[str, float]:
    """What pipe, beats and ingest add to a loop of 2 ms steps that says something at each of them."""
    with site(settings) as here:
        loop = here.folder / "loop.py"
        loop.write_text(LOOP)
        command = (sys.executable, str(loop))
        ratios, cpu_ratios, step_ms = [], [], []
        for _ in range(3):
            subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
            alone_s, alone_cpu_s = map(float, (here.folder / "took").read_text().split())
            run_id = here.submit()
            with here.sessions.begin() as session:
                claim = runs.claim(session, run_id, worker_id="w", lease_s=60, host="h", device="cpu:0")
            assert claim is not None
            watching = WorkerSettings(
                database_url=here.postgres.url, spool_dir=here.folder / "spool", artifacts=here.folder / "artifacts"
            )
            os.environ["PYTHONPATH"] = str(ROOT)
            device = Device("cpu:0", "h/cpu:0", "CPUs")
            Supervisor(watching, here.sessions, claim, device, lambda: False, command).run()
            assert here.run(run_id).status is Status.SUCCEEDED
            watched_s, watched_cpu_s = map(float, (here.folder / "took").read_text().split())
            ratios.append(watched_s / alone_s)
            cpu_ratios.append(watched_cpu_s / alone_cpu_s)
            step_ms.append(alone_s / STEPS * 1000)
    return {
        "overhead_percent": (statistics.median(ratios) - 1) * 100,
        "overhead_of_trainer_cpu_percent": (statistics.median(cpu_ratios) - 1) * 100,
        "overhead_step_ms": statistics.median(step_ms),
    }


def queries(settings: dict[str, str]) -> dict[str, float]:
    """Claim, list, sweep and hints, with 100 and with 10,000 runs in the queue."""
    found = {}
    with site(settings) as here, here.sessions() as session:
        for number in (100, 10_000):
            for table in (OutboxRow, RunRow, SweepRow):
                session.execute(delete(table))
            cells = [NewRun(CONFIG, f"h{n}", "rotrnn", "listops-short", 1, n, 20_000) for n in range(number)]
            sweeps.add(session, config={}, grid={}, cells=cells)
            session.execute(update(OutboxRow).values(published_at=text("clock_timestamp()")))
            small = sweeps.add(session, config={}, grid={}, cells=cells[:50])
            session.execute(text("UPDATE runs SET created_at = clock_timestamp()"))
            session.commit()
            session.connection(execution_options={"isolation_level": "AUTOCOMMIT"}).execute(text("VACUUM ANALYZE"))
            session.commit()
            some = small.run_ids[7]
            deeds: dict[str, Callable[[], Any]] = {
                "claim": lambda some=some: runs.claim(session, some, worker_id="w", lease_s=60, host="h", device="cpu"),
                "list": lambda: runs.page(session, Filters(), None, 50),
                "sweep": lambda small=small: (
                    sweeps.counts(session, [small.sweep.id]),
                    runs.page(session, Filters(sweep_id=small.sweep.id), None, 50),
                ),
                "take_hints": lambda: outbox.take(session),
                "reap": lambda: runs.reap(session),
                "waiting": lambda: outbox.waiting(session),
            }
            for name, deed in deeds.items():
                found[f"{name}_at_{number}_ms"] = median_ms(lambda deed=deed: (deed(), session.rollback()))
    for name in deeds:
        found[f"{name}_ratio"] = found[f"{name}_at_10000_ms"] / found[f"{name}_at_100_ms"]
    return found


MEASURES = {
    "queries": queries,
    "submits": submits,
    "overhead": overhead,
    "first_step": first_step,
    "recovery": recovery,
}


def main() -> int:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one object, the unit in each key")
    parser.add_argument("--only", nargs="+", choices=sorted(MEASURES), default=sorted(MEASURES))
    parser.add_argument("--default-lease", action="store_true", help="beat, lease and scan as they are by default")
    wanted = parser.parse_args()
    logs.configure(logging.ERROR)
    found: dict[str, float] = {}
    for name in wanted.only:
        found |= MEASURES[name]({} if wanted.default_lease else SHORT)
    rounded = {name: round(value, 3) for name, value in found.items()}
    if wanted.json:
        sys.stdout.write(json.dumps(rounded) + "\n")
    else:
        sys.stdout.writelines(f"{name:40} {value:12,.3f}\n" for name, value in rounded.items())
    return 0


if __name__ == "__main__":
    sys.exit(main())
