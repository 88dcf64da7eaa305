"""Was this request answered before? Keys that make a client's retry harmless."""

from typing import cast
from uuid import UUID

import psycopg
from sqlalchemy import Table, Text, Uuid, bindparam, delete, func, literal, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from store.errors import KeyInFlight, KeyReused
from store.tables import IdempotencyRow

_keys = cast(Table, IdempotencyRow.__table__)
_patience = select(func.set_config("lock_timeout", bindparam("patience", type_=Text), True)).cte("patience")
_CLAIM = (
    insert(_keys)
    .from_select(
        ["scope", "key", "body_sha256", "resource_id"],
        select(
            bindparam("scope", type_=Text),
            bindparam("key", type_=Text),
            bindparam("body_sha256", type_=Text),
            bindparam("makes", type_=Uuid),
        ).select_from(_patience),
    )
    .on_conflict_do_nothing()
    .returning(_keys.c.key)
)
"""Written once: each submission sends it."""


def claim(
    session: Session, scope: str, key: str, body_sha256: str, *, makes: UUID | None = None, wait_s: float = 2.0
) -> UUID | None:
    """Take the key for this transaction, or say what it made before.

    A second request with a key whose first is still in flight waits a while for that one to commit or fail.

    Args:
        scope: What the key is for, such as "POST /v1/runs".
        makes: The id of what this transaction will make, where it is known; else call `fill` before the commit.
        wait_s: How long it waits.

    Returns:
        None when the key is new, else the id of what it has made.

    Raises:
        KeyReused: The key was used before with another body.
        KeyInFlight: Its first request takes longer than that; this transaction is of no more use.
    """
    wanted = {"scope": scope, "key": key, "body_sha256": body_sha256, "makes": makes}
    try:
        new = session.execute(_CLAIM, wanted | {"patience": f"{round(wait_s * 1000)}ms"}).one_or_none()
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
