"""How does a process reach the database? One engine and one session factory per process, made after any fork."""

import json
import select
from functools import partial
from typing import Any, TypedDict

from psycopg.pq import Format
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.orm import Session, sessionmaker

BINARY = {"binary_results": True}
"""Execution option of a statement that answers long arrays or many bytes: they come as they are, not as text."""


def make_engine(
    url: str,
    *,
    application_name: str,
    pool_size: int = 5,
    statement_timeout_s: float = 30.0,
    idle_in_transaction_timeout_s: float = 60.0,
    connect_timeout_s: int = 5,
) -> Engine:
    """An engine whose connections end a statement or a forgotten transaction that lasts too long.

    A server that falls silent is noticed within about ten seconds.

    Args:
        url: postgresql+psycopg://user:password@host:port/database.
        application_name: Shown in pg_stat_activity.
        pool_size: Connections; as many again are opened under load, and kept: to open one takes longer than to use it.
        statement_timeout_s: Longest statement; 0 for no limit.
        idle_in_transaction_timeout_s: Longest pause inside a transaction; 0 for no limit.
        connect_timeout_s: Longest wait for the server to answer.
    """
    options = {
        "statement_timeout": round(statement_timeout_s * 1000),
        "idle_in_transaction_session_timeout": round(idle_in_transaction_timeout_s * 1000),
        "timezone": "UTC",
    }
    made = create_engine(
        url,
        pool_size=2 * pool_size,
        max_overflow=0,
        json_serializer=partial(json.dumps, allow_nan=False, ensure_ascii=False, separators=(",", ":")),
        connect_args={
            "application_name": application_name,
            "connect_timeout": connect_timeout_s,
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "tcp_user_timeout": 10_000,
            "options": " ".join(f"-c {name}={value}" for name, value in options.items()),
        },
    )
    event.listen(made, "checkout", _refuse_if_ended)
    event.listen(made, "before_cursor_execute", _in_binary)
    return made


class Limits(TypedDict):
    """How long statements and pauses within transactions may last."""

    statement_timeout_s: float
    idle_in_transaction_timeout_s: float


def limits_within(lease_s: float) -> Limits:
    """Limits for `make_engine` that end well before a lease does.

    Whoever locks a run's row and then stands still (stopped, swapped out, cut off) keeps its worker's beats and the
    reaper waiting until the server ends its session.
    """
    return {
        "statement_timeout_s": max(2.0, min(30.0, lease_s / 2)),
        "idle_in_transaction_timeout_s": max(2.0, min(15.0, lease_s / 4)),
    }


def session_factory(engine: Engine) -> sessionmaker[Session]:
    """Sessions whose rows stay readable after a commit."""
    return sessionmaker(engine, expire_on_commit=False)


def _in_binary(_: Any, cursor: Any, *given: Any) -> None:
    context = given[2]
    if context is not None and context.execution_options.get("binary_results"):
        cursor.format = Format.BINARY


def _refuse_if_ended(connection: Any, _record: object, _proxy: object) -> None:
    """Let the pool replace a connection that the server has ended.

    An idle connection has nothing to say but its end, so that a look at its socket tells what would otherwise take a
    question to the server before each transaction.

    Raises:
        DisconnectionError: It has ended.
    """
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if poll.poll(0):
        raise DisconnectionError
