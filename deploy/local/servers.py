"""How do Postgres and Redis run inside a folder, without an installation, an account or a fixed port?"""

import contextlib
import fcntl
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
import psycopg
import redis

from deploy.local import binaries, children, ports

READY_WITHIN_S = 60.0
STOP_WITHIN_S = 30.0
DATABASE = "rotbench"


class ServerFailed(binaries.ServerUnavailable):
    """A server did not come up; the message holds the end of its log."""


class FolderInUse(binaries.ServerUnavailable):
    """Another process of this machine runs a server on the same folder."""


class _Server:
    """A server process that owns a folder: one at a time, on 127.0.0.1, behind a random password.

    Stopping and starting again keeps port and password, so that its url stays true for as long as the object lives.
    """

    name: str
    stop_signal = signal.SIGTERM

    def __init__(self, data_dir: Path | str, *, log: Path | None = None) -> None:
        self.data_dir = Path(data_dir).absolute()
        self.log = log or self.data_dir / "log"
        self.port: int | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self._folder_lock: int | None = None

    @property
    def url(self) -> str:
        """The address, password included; known once started."""
        raise NotImplementedError

    @property
    def running(self) -> bool:
        """Whether the process that we started is alive."""
        return self.process is not None and not children.ended(self.process)

    def start(self) -> Self:
        """Start the server and wait until it answers; nothing happens when it runs already.

        Raises:
            ServerMissing: When its program isn't on this machine.
            ServerFailed: When it ends, or doesn't answer in a minute.
            FolderInUse: When another process holds the folder.
        """
        if self.running:
            return self
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self._lock_folder()
        try:
            self._prepare()
            for last_try in (False, False, False, True):
                fresh = self.port is None
                self.port = self.port or ports.any_free_port()
                if self._run(last_try or not fresh):
                    break
                self.port = None
            self._after_start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End the server in good order, and by force when it doesn't."""
        if self.process is not None:
            children.end(self.process, first=self.stop_signal, grace_s=STOP_WITHIN_S)
            self.process = None
        if self._folder_lock is not None:
            os.close(self._folder_lock)
            self._folder_lock = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _command(self) -> Sequence[str | Path]:
        raise NotImplementedError

    def _prepare(self) -> None:
        """Bring the folder into a state that the server can start on."""

    def _after_start(self) -> None:
        """Make what must exist inside the server."""

    def _ping(self) -> None:
        """Raise unless the server answers."""
        raise NotImplementedError

    def _run(self, must_work: bool) -> bool:
        command = self._command()
        self.process = children.spawn(
            command, log=self.log, env=os.environ, cwd=self.data_dir, death_signal=self.stop_signal
        )
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline:
            if children.ended(self.process):
                if must_work or "in use" not in self._end_of_log():
                    raise ServerFailed(f"{self.name} ended with code {self.process.returncode}:\n{self._end_of_log()}")
                return False
            with contextlib.suppress(psycopg.OperationalError, redis.ConnectionError, redis.TimeoutError):
                self._ping()
                return True
            time.sleep(0.03)
        raise ServerFailed(f"{self.name} did not answer within {READY_WITHIN_S:.0f} s:\n{self._end_of_log()}")

    def _end_of_log(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-10:]) if self.log.exists() else "(no log)"

    def _lock_folder(self) -> None:
        if self._folder_lock is not None:
            return
        lock = os.open(self.data_dir / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise FolderInUse(f"another process runs {self.name} on {self.data_dir}") from None
        self._folder_lock = lock

    def _password(self) -> str:
        kept = self.data_dir / "password"
        if not kept.exists():
            with os.fdopen(os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                file.write(secrets.token_urlsafe(24))
        return kept.read_text()


class EmbeddedPostgres(_Server):
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

    def _ping(self) -> None:
        self.connect("postgres").close()

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
        if os.geteuid() == 0:
            for path in (half_made, password):
                shutil.chown(path, _account_for_root())
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
        if os.geteuid() != 0:
            return command
        return children.unprivileged(command, _account_for_root(), self.stop_signal)

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


class EmbeddedRedis(_Server):
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

    def _ping(self) -> None:
        with redis.Redis.from_url(self.url, socket_connect_timeout=1, socket_timeout=2) as connection:
            connection.ping()


def _account_for_root() -> str:
    """The account that Postgres runs under when root starts it: its own where there is one, else nobody."""
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise children.CantDropRoot("Postgres refuses to run as root, and there is no account `postgres` or `nobody`")
