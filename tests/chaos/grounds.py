"""On what does chaos run? Servers of its own, and processes that are started again whenever they have ended."""

import contextlib
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from deploy.local import ports
from deploy.local.servers import EmbeddedPostgres, EmbeddedRedis
from store.migrate import migrate

ROOT = Path(__file__).parents[2]
MARK = "ROTBENCH_CHAOS"
TOKEN = "chaos"
SETTINGS = {
    "ROTBENCH_BEAT_S": "0.5",
    "ROTBENCH_LEASE_S": "4",
    "ROTBENCH_INGEST_S": "0.2",
    "ROTBENCH_REAP_INTERVAL_S": "0.5",
    "ROTBENCH_DISPATCH_INTERVAL_S": "0.2",
    "ROTBENCH_SWEEP_INTERVAL_S": "1",
    "ROTBENCH_SWEEP_AFTER_S": "4",
    "ROTBENCH_TRAINER_THREADS": "1",
    "ROTBENCH_STOP_GRACE_S": "20",
}
WORKERS = ("cpu:0", "cpu:1")
PAST_THE_LEASE_S = 7.0


def say(text: str) -> None:
    """A line on stdout, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def config_of(steps: int) -> dict[str, Any]:
    """A training of a few milliseconds a step, with dropout and many checkpoints."""
    return {
        "task": {"name": "listops-short", "train_size": 64, "validation_size": 8, "test_size": 8},
        "model": {"cell": {"name": "rotrnn", "n_heads": 2}, "d_model": 8, "d_state": 8, "n_layers": 1, "dropout": 0.1},
        "training": {
            "steps": steps, "batch_size": 4, "warmup_steps": 5, "log_every": 1, "evaluate_every": 20,
            "checkpoint_every": 10, "device": "cpu",
        },
        "probe": {"every": 20, "batch_size": 4, "positions": 8},
    }  # fmt: skip


@dataclass
class Site:
    """The servers, and the processes that are started again whenever they have ended."""

    folder: Path
    postgres: EmbeddedPostgres
    redis: EmbeddedRedis
    port: int
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    stopped: dict[int, float] = field(default_factory=dict)
    """Processes that stand still, and until when."""

    def commands(self) -> dict[str, list[str]]:
        worker = ["celery", "-A", "worker.app", "worker", "--pool", "prefork", "-c", "1", "--without-gossip"]
        return {
            "api": ["uvicorn", "api.main:app", "--host", ports.LOOPBACK, "--port", str(self.port)],
            "dispatcher": ["worker.dispatcher"],
            **{
                device: [*worker, "--without-mingle", "--hostname", f"{device.replace(':', '-')}@%h"]
                for device in WORKERS
            },
        }

    def keep(self) -> None:
        """Start what is not there, and let go on what has stood still long enough."""
        for name, command in self.commands().items():
            child = self.children.get(name)
            if child is None or child.poll() is not None:
                self.start(name, command)
        for pid, until in list(self.stopped.items()):
            if time.monotonic() > until:
                del self.stopped[pid]
                with contextlib.suppress(psutil.Error):
                    psutil.Process(pid).resume()

    def start(self, name: str, command: list[str]) -> None:
        environment = {
            **os.environ,
            **SETTINGS,
            MARK: self.mark,
            "ROTBENCH_DATABASE_URL": self.postgres.url,
            "ROTBENCH_BROKER_URL": self.redis.url,
            "ROTBENCH_ARTIFACTS": str(self.folder / "artifacts"),
            "ROTBENCH_DATA_DIR": str(self.folder / "datasets"),
            "ROTBENCH_SPOOL_DIR": str(self.folder / "spool" / name.replace(":", "-")),
            "ROTBENCH_DEVICE": name if name in WORKERS else "cpu",
        }
        with (self.folder / f"{name}.log").open("ab") as log:
            self.children[name] = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def family(self, name: str) -> list[psutil.Process]:
        """The process and its descendants, itself first; empty when it has ended."""
        try:
            process = psutil.Process(self.children[name].pid)
            return [process, *process.children(recursive=True)]
        except psutil.Error:
            return []

    def stop_for(self, processes: list[psutil.Process], seconds: float) -> None:
        for process in processes:
            with contextlib.suppress(psutil.Error):
                process.suspend()
                self.stopped[process.pid] = time.monotonic() + seconds

    def kin(self) -> list[psutil.Process]:
        """Every process of ours but the servers, whoever its parent is now."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def end(self) -> int:
        """End everything in good order; how many processes were left then."""
        self.stopped = dict.fromkeys(self.stopped, 0.0)
        self.keep()
        for child in self.children.values():
            child.terminate()
        for child in self.children.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(60)
        time.sleep(1)
        left = self.kin()
        for process in left:
            say(f"left running: {process.cmdline()}")
            process.kill()
        return len(left)


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[Site]:
    """A site with everything running."""
    with EmbeddedPostgres(folder / "postgres", durable=False) as postgres, EmbeddedRedis(folder / "redis") as server:
        migrate(postgres.url)
        site = Site(folder, postgres, server, ports.next_free_port(9000))
        try:
            yield site
        finally:
            for process in site.kin():
                process.kill()
