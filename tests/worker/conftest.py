"""What do the worker's tests share? Runs in a queue, real processes on real servers, and undisturbed trainings."""

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trainings
from service import ROOT, Service, opened

from deploy.local.servers import EmbeddedRedis
from rotrnn_core.config import RunConfig
from rotrnn_core.records import Record, from_line

Trained = Callable[[RunConfig], list[Record]]


@pytest.fixture(scope="session")
def tiny() -> Callable[..., RunConfig]:
    """Makes a training of a few milliseconds a step that says something at every step."""
    return trainings.tiny


@pytest.fixture(scope="session")
def open_service() -> Callable[..., contextlib.AbstractContextManager[Service]]:
    """Makes a service on servers of the test's own."""
    return opened


@pytest.fixture(scope="session")
def queue_run() -> Callable[..., UUID]:
    """Queues a run as the door does: queue_run(session, config=.., priority=..)."""
    return lambda session, config=None, **fields: trainings.add(session, config or trainings.tiny().to_dict(), **fields)


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tiny data lies, made once."""
    return tmp_path_factory.mktemp("datasets")


@pytest.fixture
def service(database_url: str, redis_url: str, tmp_path: Path, data_dir: Path) -> Iterator[Service]:
    """A service with nothing started yet."""
    with opened(database_url, redis_url, tmp_path, data_dir) as made:
        yield made


@pytest.fixture(scope="module")
def running(
    make_database: Callable[[], str],
    redis_server: EmbeddedRedis,
    tmp_path_factory: pytest.TempPathFactory,
    data_dir: Path,
) -> Iterator[Service]:
    """A service with a dispatcher and one worker, for all tests of a file."""
    redis_server.start()
    with opened(make_database(), redis_server.url_of(1), tmp_path_factory.mktemp("running"), data_dir) as made:
        made.start_dispatcher()
        made.start_worker()
        yield made


@pytest.fixture(scope="session")
def trained(postgres_server: Any, data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """What a training says when nothing disturbs it: `train` alone in a process, with our trainers' one thread.

    Each is trained once for all processes of this test run.
    """
    shared = postgres_server.folder / "trained"
    shared.mkdir(exist_ok=True)

    @functools.cache
    def records_of(config: RunConfig) -> list[Record]:
        given = json.dumps(config.to_dict())
        lines = shared / f"{hashlib.sha256(given.encode()).hexdigest()}.jsonl"
        with lines.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not lines.exists():
                _train_alone(given, [data_dir, tmp_path_factory.mktemp("undisturbed")], lines)
        return [from_line(line) for line in lines.read_text().splitlines()]

    return records_of


def _train_alone(config: str, folders: list[Path], lines: Path) -> None:
    script = (
        "import json, pathlib, sys, torch\n"
        "from rotrnn_core.config import RunConfig\n"
        "from rotrnn_core.records import to_line\n"
        "from rotrnn_core.training import train\n"
        "torch.set_num_threads(1)\n"
        "config, data_dir, checkpoint_dir = json.loads(sys.argv[1]), *map(pathlib.Path, sys.argv[2:])\n"
        "for record in train(RunConfig.from_dict(config), data_dir=data_dir, checkpoint_dir=checkpoint_dir):\n"
        "    sys.stdout.write(to_line(record) + '\\n')\n"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, "-c", script, config, *map(str, folders)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=300
    )
    unfinished = lines.with_suffix(".new")
    unfinished.write_text(done.stdout)
    unfinished.rename(lines)
