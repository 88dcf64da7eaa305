"""Do the migrations make what the models say, from nothing and with many at once?"""

import multiprocessing
import os
import subprocess
import sys
import time

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError, OperationalError

from store import migrate, tokens
from store.engine import make_engine, session_factory
from store.tables import Base

CATALOGUE = """
    SELECT 'column', table_name || '.' || column_name, data_type || ' ' || udt_name || ' ' || is_nullable || ' '
        || coalesce(column_default, '-') || ' ' || is_identity
    FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'alembic_version'
    UNION ALL SELECT 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND conrelid::regclass::text <> 'alembic_version'
    UNION ALL SELECT 'index', tablename || '.' || indexname, indexdef
    FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'alembic_version'
    ORDER BY 1, 2
"""


def _catalogue(engine: Engine) -> list[tuple[str, str, str]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(CATALOGUE))]


def _run(url: str, **environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "store.migrate"],
        env=os.environ | {"ROTBENCH_DATABASE_URL": url} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_alembic_finds_nothing_to_add_after_the_migrations(engine: Engine) -> None:
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True, "target_metadata": Base.metadata}
        )
        assert compare_metadata(context, Base.metadata) == []


def test_the_models_alone_make_the_same_columns_constraints_and_indexes(
    engine: Engine, empty_database_url: str
) -> None:
    by_models = make_engine(empty_database_url, application_name="tests")
    Base.metadata.create_all(by_models)
    assert _catalogue(engine) == _catalogue(by_models)
    by_models.dispose()


def _migrating() -> None:
    sys.exit(migrate.main())


def test_four_processes_may_migrate_an_empty_database_at_once(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTBENCH_DATABASE_URL", empty_database_url)
    monkeypatch.setenv("ROTBENCH_TOKEN", "a-long-and-random-token")
    processes = [multiprocessing.get_context("fork").Process(target=_migrating) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * 4
    engine = make_engine(empty_database_url, application_name="tests")
    with session_factory(engine)() as session:
        assert migrate.is_current(session)
        assert len(tokens.read(session)) == 1
        assert tokens.verify(session, "a-long-and-random-token") is not None
    engine.dispose()


def test_a_database_that_was_never_migrated_is_not_current(empty_database_url: str) -> None:
    engine = make_engine(empty_database_url, application_name="tests")
    with session_factory(engine)() as session:
        assert not migrate.is_current(session)
    engine.dispose()


def test_migrating_twice_changes_nothing(engine: Engine, database_url: str) -> None:
    before = _catalogue(engine)
    migrate.migrate(database_url)
    assert _catalogue(engine) == before


def test_the_program_gives_up_with_the_reason_when_no_server_answers() -> None:
    process = _run("postgresql+psycopg://nobody:nothing@127.0.0.1:1/none", ROTBENCH_DATABASE_WAIT_S="0.1")
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 1
    assert "refused" in output


def test_an_engine_ends_a_statement_that_lasts_too_long(database_url: str) -> None:
    engine = make_engine(database_url, application_name="tests", statement_timeout_s=0.1)
    with engine.connect() as connection, pytest.raises(OperationalError, match="statement timeout"):
        connection.execute(text("SELECT pg_sleep(2)"))
    engine.dispose()


def test_an_engine_ends_a_transaction_that_is_forgotten(database_url: str) -> None:
    engine = make_engine(database_url, application_name="tests", idle_in_transaction_timeout_s=0.1)
    with engine.connect() as connection:
        connection.execute(text("SELECT 1"))
        time.sleep(0.5)
        with pytest.raises(DBAPIError, match="idle-in-transaction"):
            connection.execute(text("SELECT 1"))
    engine.dispose()
