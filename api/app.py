"""What is the service made of? The app with its routers, its middleware and the one table of errors."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from prometheus_client import CollectorRegistry
from sqlalchemy import exc as database
from starlette.exceptions import HTTPException
from starlette.responses import Response

from api import refusals
from api.auth import bearer
from api.documentation import describe
from api.fleet_metrics import FleetMetrics
from api.limits import BodyLimit
from api.problems import Refusal
from api.routers import (
    catalogue,
    charts,
    checkpoint_file,
    compare,
    export,
    follow,
    gc,
    health,
    runs,
    seeds,
    series,
    sweeps,
    workers,
)
from api.settings import Settings
from api.streams import Streams, ending
from api.telemetry import RequestMetrics, RunCounts
from rotrnn_core.config import ConfigError
from store import errors, fleet
from store import runs as stored_runs
from store.engine import limits_within, make_engine, session_factory
from store.fleet import Fleet

ERRORS: dict[type[Exception], Callable[[Any], Refusal]] = {
    Refusal: lambda refusal: refusal,
    ConfigError: refusals.bad_config,
    RequestValidationError: refusals.bad_request,
    errors.NotFound: refusals.not_found,
    errors.IllegalMove: refusals.illegal_move,
    errors.KeyReused: refusals.key_reused,
    errors.KeyInFlight: refusals.key_in_flight,
    errors.BadCursor: refusals.bad_cursor,
    database.OperationalError: lambda _: refusals.database_away(),
    database.InterfaceError: lambda _: refusals.database_away(),
    database.TimeoutError: lambda _: refusals.database_away(),
    HTTPException: refusals.of_framework,
    Exception: lambda _: refusals.unexpected(),
}
"""Kind of error -> what the caller reads; the nearest kind counts."""


def create_app(settings: Settings) -> FastAPI:
    """The service on a database; nothing is connected before the first request."""
    engine = make_engine(
        settings.database_url,
        application_name="rotbench api",
        pool_size=settings.api_pool_size,
        statement_timeout_s=settings.api_statement_timeout_s,
        idle_in_transaction_timeout_s=limits_within(settings.lease_s)["idle_in_transaction_timeout_s"],
    )
    sessions = session_factory(engine)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        with ending(streams):
            yield
        engine.dispose()

    app = FastAPI(title="RotBench", version="1", lifespan=lifespan, redoc_url=None)
    app.state.settings = settings
    app.state.sessions = sessions
    app.state.streams = streams = Streams(lambda: app.state.sessions)
    app.state.registry = registry = CollectorRegistry()
    offered = (runs, series, follow, charts, checkpoint_file, sweeps, compare, seeds, export, gc, catalogue, workers)
    for router in offered:
        app.include_router(router.router, dependencies=[Depends(bearer)])
    app.include_router(health.router)
    app.add_middleware(BodyLimit, max_bytes=settings.api_max_body_bytes)
    app.add_middleware(RequestMetrics, registry=registry)
    for kind, refusal in ERRORS.items():
        app.add_exception_handler(kind, _handler(refusal))

    def count() -> dict[str, int]:
        with sessions() as session:
            return {status.value: number for status, number in stored_runs.counts(session).items()}

    def fleet_now() -> Fleet:
        with sessions() as session:
            return fleet.read(session, settings.lease_s)

    registry.register(RunCounts(count))
    registry.register(FleetMetrics(fleet_now))
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]
    return app


def _handler(refusal: Callable[[Any], Refusal]) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answer(_: Request, error: Exception) -> Response:
        return refusal(error).response()

    return answer
