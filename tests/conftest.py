"""What do the tests of all rooms share? Real servers: one Postgres per run, one Redis per process, one stack."""

import fcntl
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import psycopg
import pytest
import redis
from hypothesis import HealthCheck, settings

from deploy.local.servers import EmbeddedPostgres, EmbeddedRedis

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.orm import Session

os.environ.setdefault("OMP_NUM_THREADS", "1")
"""Before torch is imported: a test process has one core, and OpenMP's threads spin while they wait."""

settings.register_profile("repeatable", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("exploring", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
"""No clock decides a test, and the same commit gives the same verdict; HYPOTHESIS_PROFILE=exploring looks further."""

ROOT = Path(__file__).parents[1]
TEMPLATE = "migrated"
SHORT_LEASE = {
    "ROTBENCH_BEAT_S": "0.5",
    "ROTBENCH_LEASE_S": "4",
    "ROTBENCH_REAP_INTERVAL_S": "0.5",
    "ROTBENCH_DISPATCH_INTERVAL_S": "0.1",
    "ROTBENCH_SWEEP_AFTER_S": "10",
    "ROTBENCH_DATA_WAIT_S": "600",
    "ROTBENCH_TRAINER_THREADS": "1",
}


@dataclass(frozen=True)
class SharedPostgres:
    """The Postgres server that all processes of one test run share.

    Databases are not dropped: each drop waits for a checkpoint, and the whole folder goes at the end of the run.
    """

    server: EmbeddedPostgres
    folder: Path

    def url_of(self, database: str) -> str:
        return self.server.url_of(database)

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        return self.server.connect(database)

    def create(self, template: str | None = None) -> str:
        """Make a database, empty or a copy of a template, and say its name."""
        name = f"test_{uuid.uuid4().hex}"
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template or 'template1'} STRATEGY file_copy")
        return name

    def template(self) -> str:
        """The database that holds the migrated schema, made by the first process that asks."""
        with _locked(self.folder / "template.lock"):
            if not (self.folder / "template.done").exists():
                from store.migrate import migrate

                with self.connect() as connection:
                    connection.execute(f"DROP DATABASE IF EXISTS {TEMPLATE}")
                    connection.execute(f"CREATE DATABASE {TEMPLATE}")
                migrate(self.url_of(TEMPLATE))
                (self.folder / "template.done").touch()
        return TEMPLATE


@dataclass(frozen=True)
class Stack:
    """A real local stack: every process and server that production has."""

    api_url: str
    dashboard_url: str | None
    token: str
    data_dir: Path

    @property
    def pids(self) -> dict[str, int]:
        """The process ids by name, as they are now."""
        described = json.loads((self.data_dir / "stack.json").read_text())
        return {name: process["pid"] for name, process in described["processes"].items()}


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[SharedPostgres]:
    """One Postgres for all processes of this test run; it ends with the last of them."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid.uuid4().hex
    folder = Path(tempfile.gettempdir()) / f"rotbench-tests-{run}"
    folder.mkdir(mode=0o755, exist_ok=True)
    with (folder / "users").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        with _locked(folder / "start.lock"):
            if not (folder / "address").exists():
                _start_ward(folder)
        server = EmbeddedPostgres(folder / "postgres", durable=False)
        server.port = json.loads((folder / "address").read_text())["port"]
        yield SharedPostgres(server, folder)


@pytest.fixture(scope="session")
def make_database(postgres_server: SharedPostgres) -> Callable[[], str]:
    """A function that makes a fresh migrated database and returns its url."""
    return lambda: postgres_server.url_of(postgres_server.create(template=postgres_server.template()))


@pytest.fixture
def empty_database_url(postgres_server: SharedPostgres) -> str:
    """A database that no migration has touched."""
    return postgres_server.url_of(postgres_server.create())


@pytest.fixture
def database_url(make_database: Callable[[], str]) -> str:
    """A fresh migrated database for one test."""
    return make_database()


@pytest.fixture
def engine(database_url: str) -> "Iterator[Engine]":
    """An engine on a fresh migrated database, made as the processes make theirs."""
    from store.engine import make_engine

    made = make_engine(database_url, application_name="tests", pool_size=5)
    yield made
    made.dispose()


@pytest.fixture
def session(engine: "Engine") -> "Iterator[Session]":
    """A session on a fresh migrated database; the test commits."""
    from store.engine import session_factory

    with session_factory(engine)() as opened:
        yield opened


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    """One Redis for this test process."""
    with EmbeddedRedis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def redis_url(redis_server: EmbeddedRedis) -> str:
    """An empty Redis for one test; started again when the test before has stopped it."""
    redis_server.start()
    with redis.Redis.from_url(redis_server.url) as connection:
        connection.flushall()
    return redis_server.url


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The whole stack with short leases, on free ports, for all tests of this process."""
    data_dir = tmp_path_factory.mktemp("stack")
    environment = os.environ | SHORT_LEASE
    command = [sys.executable, "-m", "deploy.local"]
    up = [*command, "up", "--detach", "--data-dir", str(data_dir), "--api-port", "0", "--dashboard-port", "0"]
    started = subprocess.run(up, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=180, check=False)
    assert started.returncode == 0, started.stdout + started.stderr
    described = json.loads((data_dir / "stack.json").read_text())
    token = Path(described["token_file"]).read_text().strip()
    yield Stack(described["api_url"], described["dashboard_url"], token, data_dir)
    subprocess.run([*command, "down", "--data-dir", str(data_dir)], cwd=ROOT, timeout=120, check=True)


def _start_ward(folder: Path) -> None:
    with (folder / "ward.log").open("wb") as log:
        ward = subprocess.Popen(
            [sys.executable, ROOT / "tests" / "postgres_ward.py", folder],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            start_new_session=True,
        )
    deadline = time.monotonic() + 90
    while not (folder / "address").exists():
        assert ward.poll() is None, (folder / "ward.log").read_text()
        assert time.monotonic() < deadline, "the Postgres of the tests did not start in 90 s"
        time.sleep(0.03)


class _locked:  # noqa: N801 - reads as a word in a with statement
    """Hold a file's lock for the length of a with block; other processes wait."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[str]

    def __enter__(self) -> None:
        self._file = self._path.open("w")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self._file.close()
