"""What is the Celery application? One kind of message, which carries only a run's id, and the hooks of a worker.

A worker is `celery -A worker.app worker --pool prefork --concurrency 1`: the main process owns the device and is seen
by others, its one pool child supervises one trainer at a time.
"""

# mypy: allow-untyped-decorators

import sys
from typing import Any

from celery import signals

from worker import logs
from worker.broker import TRAIN_RUN, make_app
from worker.settings import BrokerSettings, WorkerSettings
from worker.station import Station

app = make_app(BrokerSettings().broker_url.get_secret_value())


@app.task(name=TRAIN_RUN)
def train_run(run_id: str) -> None:
    """Train the run, unless the message is stale."""
    app.station.train(run_id)


@signals.setup_logging.connect
def _log_our_way(**_: Any) -> None:
    logs.configure()


@signals.worker_init.connect
def _take_device(**_: Any) -> None:
    """The only hook that may refuse; anything but SystemExit would be swallowed by Celery."""
    logs.configure()
    try:
        app.station = Station(WorkerSettings())
    except Exception as error:  # noqa: BLE001 - the edge: a worker without its device or settings does not start
        sys.exit(f"the worker does not start: {error}")


@signals.worker_ready.connect
def _serve(sender: Any, **_: Any) -> None:
    app.station.serve(app, sender)


@signals.worker_process_init.connect
def _enter_child(**_: Any) -> None:
    app.station.enter_child()


@signals.worker_shutting_down.connect
def _shut_down(**_: Any) -> None:
    app.station.shut_down()


@signals.worker_shutdown.connect
def _close(**_: Any) -> None:
    app.station.close()
