"""How many requests are served, and how fast? Counted per route in the app's own Prometheus registry."""

import time
from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class RequestMetrics:
    """Middleware that counts each request by method, route template and status, and times it."""

    def __init__(self, app: ASGIApp, registry: CollectorRegistry) -> None:
        self._app = app
        self._requests = Counter(
            "rotbench_http_requests", "Requests answered.", ("method", "route", "status"), registry=registry
        )
        self._durations = Histogram(
            "rotbench_http_request_duration_seconds",
            "Time to the end of the answer.",
            ("method", "route"),
            registry=registry,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            route = getattr(scope.get("route"), "path_format", "none")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._requests.labels(method, route, status).inc()
            self._durations.labels(method, route).observe(time.perf_counter() - began)


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RunCounts(Collector):
    """Runs by status, counted in the database at each scrape; without a database the request metrics still come."""

    def __init__(self, count: Callable[[], Mapping[str, int]]) -> None:
        self._count = count

    def describe(self) -> Iterable[Metric]:
        """What `collect` gives, without asking the database."""
        return [_up(), _runs()]

    def collect(self) -> Iterable[Metric]:
        """The counts as they are now."""
        up, runs = _up(), _runs()
        try:
            counts = self._count()
        except SQLAlchemyError:
            up.add_metric((), 0)
            return [up]
        up.add_metric((), 1)
        for status, count in counts.items():
            runs.add_metric((status,), count)
        return [up, runs]


def _up() -> GaugeMetricFamily:
    return GaugeMetricFamily("rotbench_database_up", "Whether the database answered this scrape.", labels=())


def _runs() -> GaugeMetricFamily:
    return GaugeMetricFamily("rotbench_runs", "Runs by status.", labels=("status",))
