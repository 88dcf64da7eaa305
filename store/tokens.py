"""Who may come in? Bearer tokens, kept as their SHA-256 only: they are long and random, so that no salt is needed."""

import hashlib
import secrets
from uuid import UUID

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from store.errors import NotFound
from store.tables import TokenRow


def issue(session: Session, name: str) -> str:
    """Make a token; its text is returned here and never again."""
    token = secrets.token_urlsafe(32)
    ensure(session, name, token)
    return token


def ensure(session: Session, name: str, token: str) -> None:
    """Make sure that this token is let in, also when it was revoked before.

    Raises:
        ValueError: The token is empty.
    """
    if not token:
        raise ValueError("an empty token would let everybody in: choose a long random text")
    session.execute(
        insert(TokenRow)
        .values(name=name, sha256=_sha256(token))
        .on_conflict_do_update(index_elements=[TokenRow.sha256], set_={"name": name, "revoked_at": None})
    )


def verify(session: Session, token: str) -> TokenRow | None:
    """The token's row, or None when it is unknown or revoked."""
    return session.scalars(
        select(TokenRow)
        .where(TokenRow.sha256 == _sha256(token), TokenRow.revoked_at.is_(None))
        .execution_options(populate_existing=True)
    ).one_or_none()


def read(session: Session) -> list[TokenRow]:
    """Every token, oldest first."""
    return list(session.scalars(select(TokenRow).order_by(TokenRow.created_at)))


def revoke(session: Session, token_id: UUID) -> None:
    """Let a token in no more.

    Raises:
        NotFound: There is no such token.
    """
    revoked = session.execute(
        update(TokenRow)
        .where(TokenRow.id == token_id)
        .values(revoked_at=func.coalesce(TokenRow.revoked_at, func.clock_timestamp()))
        .returning(TokenRow.id)
    ).one_or_none()
    if revoked is None:
        raise NotFound("token", token_id)


def _sha256(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
