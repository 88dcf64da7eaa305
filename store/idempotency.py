"""Was this request answered before? Keys that make a client's retry harmless."""

from uuid import UUID

import psycopg
from sqlalchemy import delete, func, literal, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from store.errors import KeyInFlight, KeyReused
from store.tables import IdempotencyRow


def claim(session: Session, scope: str, key: str, body_sha256: str, *, wait_s: float = 2.0) -> UUID | None:
    """Take the key for this transaction, or say what it made before.

    A second request with a key whose first is still in flight waits a while for that one to commit or fail.

    Args:
        scope: What the key is for, such as "POST /v1/runs".
        wait_s: How long it waits.

    Returns:
        None when the key is new: call `fill` before the commit. Else the id that it was filled with.

    Raises:
        KeyReused: The key was used before with another body.
        KeyInFlight: Its first request takes longer than that; this transaction is of no more use.
    """
    session.execute(select(func.set_config("lock_timeout", f"{round(wait_s * 1000)}ms", True)))
    try:
        new = session.execute(
            insert(IdempotencyRow)
            .values(scope=scope, key=key, body_sha256=body_sha256)
            .on_conflict_do_nothing()
            .returning(IdempotencyRow.key)
        ).one_or_none()
    except OperationalError as error:
        if isinstance(error.orig, psycopg.errors.LockNotAvailable):
            raise KeyInFlight(key) from error
        raise
    if new is not None:
        return None
    before = session.get_one(IdempotencyRow, (scope, key), populate_existing=True)
    if before.body_sha256 != body_sha256:
        raise KeyReused(key)
    return before.resource_id


def fill(session: Session, scope: str, key: str, resource_id: UUID) -> None:
    """Note what the key has made, in the transaction that made it."""
    session.execute(
        update(IdempotencyRow)
        .where(IdempotencyRow.scope == scope, IdempotencyRow.key == key)
        .values(resource_id=resource_id)
    )


def forget(session: Session, older_than_s: float) -> int:
    """Drop old keys; how many there were."""
    long_ago = func.clock_timestamp() - literal(older_than_s) * text("interval '1 second'")
    return len(
        session.scalars(
            delete(IdempotencyRow).where(IdempotencyRow.created_at < long_ago).returning(IdempotencyRow.key)
        ).all()
    )
