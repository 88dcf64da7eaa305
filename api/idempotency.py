"""What does an Idempotency-Key promise? The same key with the same body gives the thing that it gave before."""

import hashlib
import json
from typing import Annotated
from uuid import UUID

from fastapi import Header
from pydantic import BaseModel
from sqlalchemy.orm import Session

from api.problems import Refusal
from store import idempotency

IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="Any text of your own, such as a UUID: sent again with the same body, nothing new is made.",
    ),
]


def earlier(
    session: Session, scope: str, key: str | None, wanted: BaseModel, *, makes: UUID | None = None
) -> UUID | None:
    """What the key stands for already; None when there is no key, or this transaction now owns it.

    The key then stands for `makes`, or for what `keep` is told. Waits a while for a request with the same key that is
    under way.

    Raises:
        KeyReused: The key was used with another body.
        KeyInFlight: The other request takes longer.
    """
    if key is None:
        return None
    # Without defaults, a body stays the same when a later version of the service knows more fields.
    body = json.dumps(wanted.model_dump(mode="python", exclude_defaults=True), sort_keys=True)
    return idempotency.claim(session, scope, key, hashlib.sha256(body.encode()).hexdigest(), makes=makes)


def keep(session: Session, scope: str, key: str | None, resource_id: UUID) -> None:
    """Let the key stand for what this transaction makes."""
    if key is not None:
        idempotency.fill(session, scope, key, resource_id)


def spent(key: str | None) -> Refusal:
    """What the key made is deleted, and it makes nothing else."""
    return Refusal(
        409,
        "idempotency-key-spent",
        f"What the idempotency key {key!r} made was deleted.",
        field="Idempotency-Key",
        value=key,
        remedy="use a new key",
    )
