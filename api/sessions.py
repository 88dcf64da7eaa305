"""How does an endpoint reach the database? A session per request, which the endpoint commits."""

from collections.abc import AsyncIterator
from typing import Annotated

import anyio
from fastapi import Depends, Request
from sqlalchemy.orm import Session, sessionmaker


async def factory(request: Request) -> sessionmaker[Session]:
    """The app's session factory."""
    made: sessionmaker[Session] = request.app.state.sessions
    return made


async def session(sessions: Annotated[sessionmaker[Session], Depends(factory)]) -> AsyncIterator[Session]:
    """A session whose connection goes back to the pool as soon as the endpoint returns."""
    opened = sessions()
    try:
        yield opened
    finally:
        if not opened.in_transaction():
            opened.close()  # after a commit there is nothing to wait for
        else:
            # A thread of its own: all others may be waiting for the very connection that this one holds.
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(opened.close, limiter=anyio.CapacityLimiter(1))


SessionDep = Annotated[Session, Depends(session, scope="function")]
FactoryDep = Annotated[sessionmaker[Session], Depends(factory)]
