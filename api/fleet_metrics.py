"""What does Prometheus learn of the fleet? Queue, leases, workers and ingest, from the database at each scrape."""

from collections.abc import Callable, Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError

from store.fleet import Fleet

_GAUGES = {
    "oldest_queued_s": ("rotbench_oldest_queued_seconds", "Age of the run that has waited longest in the queue."),
    "waiting_hints": ("rotbench_outbox_waiting", "Hints that are not yet published to the broker."),
    "leases": ("rotbench_leases", "Runs that a worker holds."),
    "expired_leases": ("rotbench_leases_expired", "Leases that have run out and are not yet taken."),
    "shortest_lease_s": (
        "rotbench_lease_seconds_left",
        "What is left of the lease that ends first; negative once over.",
    ),
    "oldest_beat_s": ("rotbench_oldest_beat_seconds", "Age of the oldest last beat of a worker."),
}


class FleetMetrics(Collector):
    """The fleet, read at each scrape; without a database it says nothing, and rotbench_database_up says 0."""

    def __init__(self, read: Callable[[], Fleet]) -> None:
        self._read = read

    def describe(self) -> Iterable[Metric]:
        """What `collect` gives, without asking the database."""
        return [*_gauges().values(), _workers(), _inserted()]

    def collect(self) -> Iterable[Metric]:
        """The fleet as it is now."""
        try:
            fleet = self._read()
        except SQLAlchemyError:
            return []
        gauges, workers, inserted = _gauges(), _workers(), _inserted()
        for name, gauge in gauges.items():
            gauge.add_metric((), getattr(fleet, name))
        for state, number in fleet.workers.items():
            workers.add_metric((state,), number)
        for table, rows in fleet.inserted_rows.items():
            inserted.add_metric((table,), rows)
        return [*gauges.values(), workers, inserted]


def _gauges() -> dict[str, GaugeMetricFamily]:
    return {name: GaugeMetricFamily(*said, labels=()) for name, said in _GAUGES.items()}


def _workers() -> GaugeMetricFamily:
    return GaugeMetricFamily(
        "rotbench_workers", "Workers by state; unknown: not heard of for a lease.", labels=("state",)
    )


def _inserted() -> CounterMetricFamily:
    return CounterMetricFamily(
        "rotbench_inserted_rows", "Rows inserted by table, as Postgres counts.", labels=("table",)
    )
