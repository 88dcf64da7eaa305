"""Is the database's schema the one that this program needs? `python -m store.migrate` makes it so."""

import logging
import sys
import time
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy import Engine, func, select, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from store import tokens
from store.engine import make_engine, session_factory

log = logging.getLogger("store.migrate")

_LOCK = 0x726F7461
"""Advisory lock that one migrating process holds at a time."""


class Settings(BaseSettings):
    """What `python -m store.migrate` is told."""

    model_config = SettingsConfigDict(env_prefix="ROTBENCH_")

    database_url: str
    token: str | None = Field(default=None, min_length=1)
    database_wait_s: float = 60.0


def head() -> str:
    """The revision that this program needs."""
    revision = ScriptDirectory.from_config(_config()).get_current_head()
    assert revision is not None
    return revision


def is_current(session: Session) -> bool:
    """Whether the database is at the revision that this program needs."""
    return MigrationContext.configure(session.connection()).get_current_revision() == head()


def migrate(url: str) -> None:
    """Bring the schema to the newest revision; any number of processes may do so at once."""
    engine = _patient_engine(url)
    try:
        _upgrade(engine)
    finally:
        engine.dispose()


def _upgrade(engine: Engine) -> None:
    with engine.connect() as connection:
        connection.execute(select(func.pg_advisory_lock(_LOCK)))
        connection.commit()
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        connection.commit()
        connection.execute(select(func.pg_advisory_unlock(_LOCK)))
        connection.commit()


def _patient_engine(url: str) -> Engine:
    return make_engine(
        url, application_name="rotbench-migrate", statement_timeout_s=0.0, idle_in_transaction_timeout_s=0.0
    )


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    return config


def wait_until_up(engine: Engine, wait_s: float) -> None:
    """Return once the server answers.

    Raises:
        OperationalError: It did not within `wait_s`.
    """
    deadline = time.monotonic() + wait_s
    while True:
        try:
            with engine.connect() as connection:
                connection.execute(text("SELECT 1"))
            return
        except OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def main() -> int:
    """Wait for the server, migrate, and let the given token in."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    settings = Settings()
    engine = _patient_engine(settings.database_url)
    try:
        wait_until_up(engine, settings.database_wait_s)
    except OperationalError as error:
        log.error("no database answered within %g s: %s", settings.database_wait_s, error.orig)
        return 1
    _upgrade(engine)
    if settings.token is not None:
        with session_factory(engine).begin() as session:
            tokens.ensure(session, "first", settings.token)
    engine.dispose()
    log.info("the schema is at revision %s", head())
    return 0


if __name__ == "__main__":
    sys.exit(main())
