"""Where do hints go, and how urgent are they? The queue on Redis, its levels, its length."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import redis
from celery import Celery
from kombu.exceptions import KombuError

from store.outbox import Hint
from store.status import Priority

QUEUE = "rotbench"
"""Of runs that any worker can train; those that need published data have a queue per data set."""
TRAIN_RUN = "worker.train_run"
LEVELS = {Priority.HIGH: 0, Priority.NORMAL: 1, Priority.LOW: 2}
"""On Redis level 0 is served first."""

SILENT_AFTER_S = 5.0
"""A Redis that does not answer for so long is away."""

TRANSPORT = {
    "priority_steps": sorted(LEVELS.values()),
    "queue_order_strategy": "round_robin",  # among the queues of one level; a higher level comes first in any of them
    "socket_timeout": SILENT_AFTER_S,
    "socket_connect_timeout": SILENT_AFTER_S,
    "socket_keepalive": True,
    "health_check_interval": 10,
    # How often a publisher tries to connect before it says that Redis is away; Kombu's default is for ever.
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0.1,
    "interval_max": 0.1,
}


def make_app(url: str) -> Celery:
    """A Celery application that speaks to the Redis at `url`: JSON only, early acknowledgement, no results."""
    app = Celery("rotbench")
    app.conf.update(
        broker_url=url,
        broker_transport_options=TRANSPORT,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        accept_content=["json"],
        task_serializer="json",
        task_ignore_result=True,
        task_default_queue=QUEUE,
        task_acks_late=False,
        worker_concurrency=1,
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=True,
        worker_enable_prefetch_count_reduction=False,
        worker_enable_remote_control=False,
        worker_redirect_stdouts=False,
    )
    return app


class BrokerAway(Exception):
    """Redis cannot be reached, or does not answer."""


def level(priority: int) -> int:
    """The level of a run's priority; one between two named ones goes with the lower."""
    return next((LEVELS[named] for named in sorted(LEVELS, reverse=True) if priority >= named), max(LEVELS.values()))


def queue_of(needs_data: str | None) -> str:
    """The queue of the runs that need these data, from which only workers take that have them."""
    return QUEUE if needs_data is None else f"{QUEUE}.data.{needs_data}"


def publish(app: Celery, hints: Sequence[Hint]) -> None:
    """Send one message per hint, with nothing in it but the run's id.

    Raises:
        BrokerAway: Some or none were sent; sending them all again does no harm.
    """
    with _away_is_said(), app.producer_or_acquire() as producer:
        for hint in hints:
            app.send_task(
                TRAIN_RUN,
                args=[str(hint.run_id)],
                queue=queue_of(hint.needs_data),
                priority=level(hint.priority),
                producer=producer,
                retry=False,
            )


def waiting(app: Celery, *queues: str) -> int:
    """How many hints wait on all levels of these queues, or of the one for any worker.

    Raises:
        BrokerAway: Redis does not say.
    """
    held = 0
    with _away_is_said(), app.connection_for_read() as connection, connection.channel() as channel:
        for queue in queues or (QUEUE,):
            with suppress(*connection.channel_errors):  # an empty queue is none
                held += int(channel.queue_declare(queue=queue, passive=True).message_count)
    return held


@contextmanager
def _away_is_said() -> Iterator[None]:
    try:
        yield
    except (redis.RedisError, KombuError, OSError) as error:
        raise BrokerAway(str(error)) from error
