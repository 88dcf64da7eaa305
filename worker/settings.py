"""What can be set from outside? The environment of the worker and of the dispatcher, read once and passed down."""

import os
import socket
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from worker.places import rooted


class BrokerSettings(BaseSettings):
    """Where the messages are."""

    model_config = SettingsConfigDict(env_prefix="ROTBENCH_", extra="ignore")

    broker_url: SecretStr = SecretStr("redis://127.0.0.1:6379/0")
    """redis://host:port/db, rediss://.., or redis+socket:///path/to/socket?virtual_host=db."""


class DispatcherSettings(BrokerSettings):
    """The dispatcher: outbox to broker, sweep, reap."""

    database_url: SecretStr
    dispatch_interval_s: float = Field(default=0.5, gt=0)
    sweep_interval_s: float = Field(default=5, gt=0)
    sweep_after_s: float = Field(default=60, gt=0)
    reap_interval_s: float = Field(default=5, gt=0)
    beat_s: float = Field(default=15, gt=0)
    lease_s: float = Field(default=60, gt=0)
    data_wait_s: float = Field(default=60, ge=0)
    """For so long runs wait for published data that no living worker has; then they fail as data_missing."""
    idempotency_kept_s: float = Field(default=7 * 86400, gt=0)
    """For so long a request that is sent again with its idempotency key makes nothing new."""


class WorkerSettings(BrokerSettings):
    """One worker: one device, one run at a time."""

    database_url: SecretStr
    artifacts: Annotated[str, BeforeValidator(rooted)] = Field(default=".rotbench/artifacts", validate_default=True)
    """A folder that the hosts share, or a URL such as s3://bucket/folder; file:///folder is a folder too."""
    data_dir: Path = Path(".rotbench/datasets")
    spool_dir: Path = Path(".rotbench/spool")
    device: str = Field(default="auto", pattern=r"^(auto|cpu|cpu:\d+|cuda:\d+)$")
    worker_name: str | None = None
    beat_s: float = Field(default=15, gt=0)
    lease_s: float = Field(default=60, gt=0)
    ingest_s: float = Field(default=0.5, gt=0)
    stall_timeout_s: float = Field(default=600, gt=0)
    run_deadline_s: float | None = Field(default=None, gt=0)
    stop_grace_s: float = Field(default=20, gt=0)
    """How long a trainer may take for its last step and checkpoint before its processes are killed."""
    trainer_threads: int | None = Field(default=None, gt=0)

    @property
    def host(self) -> str:
        """This machine's name."""
        return socket.gethostname()

    @property
    def threads(self) -> int:
        """Threads that one trainer may use; without a setting, the cores it may run on but one.

        The last core is left to those who watch: with it, small networks train no faster and the rest waits.
        """
        return self.trainer_threads or max(1, len(os.sched_getaffinity(0)) - 1)
