"""How does a process reach the database? One engine and one session factory per process, made after any fork."""

import json
from functools import partial
from typing import TypedDict

from sqlalchemy import Engine, create_engine
from sqlalchemy.orm import Session, sessionmaker


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
        pool_size: Connections kept; as many again may be opened under load.
        statement_timeout_s: Longest statement; 0 for no limit.
        idle_in_transaction_timeout_s: Longest pause inside a transaction; 0 for no limit.
        connect_timeout_s: Longest wait for the server to answer.
    """
    options = {
        "statement_timeout": round(statement_timeout_s * 1000),
        "idle_in_transaction_session_timeout": round(idle_in_transaction_timeout_s * 1000),
        "timezone": "UTC",
    }
    return create_engine(
        url,
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_pre_ping=True,
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
