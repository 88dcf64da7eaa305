"""Who may come in? Bearers of a token whose SHA-256 the database holds."""

from typing import Annotated

from fastapi import Depends
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from api.problems import Refusal
from api.sessions import FactoryDep
from store import tokens

_bearer = HTTPBearer(
    auto_error=False, scheme_name="token", description="The token that the service was set up with, or a later one."
)


def bearer(
    sessions: FactoryDep, given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)] = None
) -> None:
    """Let a valid token pass; the connection is not kept for the endpoint, so that waiting requests cannot block it.

    Raises:
        Refusal: 401, without a token or with a wrong one.
    """
    if given is None:
        raise _unauthorised("There is no bearer token.", None)
    with sessions() as session:
        session.connection(execution_options={"isolation_level": "AUTOCOMMIT"})  # one statement needs no transaction
        if tokens.verify(session, given.credentials) is None:
            raise _unauthorised("The bearer token is not known, or was revoked.", "(not shown)")


def _unauthorised(detail: str, value: str | None) -> Refusal:
    return Refusal(
        401,
        "unauthorised",
        detail,
        field="Authorization",
        value=value,
        remedy="send the header 'Authorization: Bearer <token>' with the token of this service",
        headers={"WWW-Authenticate": 'Bearer realm="rotbench"'},
    )
