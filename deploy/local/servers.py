"""How do Postgres and Redis run inside a folder, without an installation, an account or a fixed port?"""

import os
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path

import psutil
import psycopg
import redis

from deploy.local import binaries, children, ports, rootless
from deploy.local.server import STOP_WITHIN_S, FolderServer, ServerFailed

DATABASE = "rotbench"


class EmbeddedPostgres(FolderServer):
    """Postgres on a folder: initialised at the first start, one database, one owner.

    Run by root it becomes another account, as Postgres demands, and no folder's permissions are widened for it.

    Args:
        data_dir: Made when absent; holds cluster, password and lock.
        log: Where the server's output goes; by default into the folder.
        durable: False leaves out every wait for the disk: for tests, whose data may be lost with the machine.
    """

    name = "Postgres"
    stop_signal = signal.SIGINT

    def __init__(self, data_dir: Path | str, *, log: Path | None = None, durable: bool = True) -> None:
        super().__init__(data_dir, log=log)
        self.cluster = self.data_dir / "cluster"
        self._durable = durable

    @property
    def url(self) -> str:
        return self.url_of(DATABASE)

    def url_of(self, database: str) -> str:
        """The address of one database of this server, as SQLAlchemy reads it."""
        return self._dsn(database).replace("postgresql://", "postgresql+psycopg://", 1)

    def connect(self, database: str = DATABASE) -> psycopg.Connection:
        """A new connection as the owner, in autocommit."""
        return psycopg.connect(self._dsn(database), autocommit=True, connect_timeout=5)

    def _dsn(self, database: str) -> str:
        return f"postgresql://rotbench:{self._password()}@{ports.LOOPBACK}:{self.port}/{database}"

    def _prepare(self) -> None:
        self._end_leftover()
        self._program = binaries.postgres(self._version_of_data()).path
        self._account = rootless.account(self.cluster) if os.geteuid() == 0 else None
        if self._account is not None:
            self._program = rootless.reachable(self._account, self._program)
        if not (self.cluster / "PG_VERSION").exists():
            self._initialise()

    def _command(self) -> Sequence[str | Path]:
        settings = {
            "listen_addresses": ports.LOOPBACK,
            "port": str(self.port),
            "unix_socket_directories": "",
            "timezone": "UTC",
            "jit": "off",
            "max_connections": "200",
        }
        if not self._durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        command: list[str | Path] = [self._program, "-D", self.cluster]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        return self._as_other_than_root(command)

    def _answers(self) -> bool:
        try:
            self.connect("postgres").close()
        except psycopg.OperationalError:
            return False
        return True

    def _after_start(self) -> None:
        with self.connect("postgres") as connection:
            if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone() is None:
                connection.execute(f"CREATE DATABASE {DATABASE}")

    def _version_of_data(self) -> int | None:
        written = self.cluster / "PG_VERSION"
        return int(written.read_text()) if written.exists() else None

    def _initialise(self) -> None:
        """Make the cluster beside its final name, so that an interrupted start leaves nothing half made."""
        half_made = self.data_dir / "cluster.new"
        shutil.rmtree(half_made, ignore_errors=True)
        half_made.mkdir(mode=0o700)
        password = self.data_dir / "password.new"
        password.write_text(self._password())
        password.chmod(0o600)
        if self._account is not None:
            for path in (half_made, password):
                shutil.chown(path, self._account)
        command: list[str | Path] = [self._program.parent / "initdb", "-D", half_made, "-U", "rotbench"]
        command += [f"--pwfile={password}", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"]
        made = children.spawn(
            self._as_other_than_root(command),
            log=self.log,
            env=os.environ,
            cwd=self.data_dir,
            death_signal=signal.SIGKILL,
        )
        code = made.wait()
        password.unlink()
        if code != 0:
            raise ServerFailed(f"Postgres could not be initialised in {half_made}:\n{self._end_of_log()}")
        half_made.rename(self.cluster)

    def _as_other_than_root(self, command: Sequence[str | Path]) -> Sequence[str | Path]:
        if self._account is None:
            return command
        return rootless.as_account(self._account, command, self.stop_signal)

    def _end_leftover(self) -> None:
        """End a postmaster of this very folder that outlived its owner, known by its pid file and command line."""
        try:
            leftover = psutil.Process(int((self.cluster / "postmaster.pid").read_text().split()[0]))
            ours = str(self.cluster) in leftover.cmdline() and leftover.name().startswith("postgres")
        except (OSError, ValueError, IndexError, psutil.Error):
            return
        if ours:
            leftover.send_signal(self.stop_signal)
            try:
                leftover.wait(STOP_WITHIN_S)
            except psutil.TimeoutExpired:
                leftover.send_signal(signal.SIGQUIT)
                leftover.wait(STOP_WITHIN_S)


class EmbeddedRedis(FolderServer):
    """Redis on a folder, keeping nothing on disk: what it carries can be published again from the database.

    Args:
        data_dir: Made when absent; holds configuration, password and lock.
        log: Where the server's output goes; by default into the folder.
    """

    name = "Redis"

    @property
    def url(self) -> str:
        return self.url_of(0)

    def url_of(self, database: int) -> str:
        """The address of one of its numbered databases."""
        return f"redis://:{self._password()}@{ports.LOOPBACK}:{self.port}/{database}"

    def _command(self) -> Sequence[str | Path]:
        configuration = self.data_dir / "redis.conf"
        lines = [
            f"bind {ports.LOOPBACK}",
            f"port {self.port}",
            f"requirepass {self._password()}",
            f'dir "{self.data_dir}"',
            "databases 64",
            'save ""',
            "appendonly no",
            "daemonize no",
            "maxmemory-policy noeviction",
        ]
        configuration.touch(mode=0o600)
        configuration.write_text("\n".join(lines) + "\n")
        return [binaries.redis().path, configuration]

    def _answers(self) -> bool:
        with redis.Redis.from_url(self.url, socket_connect_timeout=1, socket_timeout=2) as connection:
            try:
                return bool(connection.ping())
            except (redis.ConnectionError, redis.TimeoutError):
                return False
