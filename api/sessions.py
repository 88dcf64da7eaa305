"""How does an endpoint reach the database? A session per request, which the endpoint commits."""

from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy.orm import Session, sessionmaker


def factory(request: Request) -> sessionmaker[Session]:
    """The app's session factory."""
    made: sessionmaker[Session] = request.app.state.sessions
    return made


def session(sessions: Annotated[sessionmaker[Session], Depends(factory)]) -> Iterator[Session]:
    """A session whose connection goes back to the pool as soon as the endpoint returns."""
    with sessions() as opened:
        yield opened


SessionDep = Annotated[Session, Depends(session, scope="function")]
FactoryDep = Annotated[sessionmaker[Session], Depends(factory)]
