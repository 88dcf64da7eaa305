"""What can go wrong? One function per kind of fault; it returns False where it cannot strike now."""

import time
from collections.abc import Callable

import psutil
import redis
from crowd import Crowd
from grounds import PAST_THE_LEASE_S, WORKERS

from store import checkpoints
from store.outbox import Hint
from store.status import Priority
from worker import broker


def _worker(crowd: Crowd) -> list[psutil.Process]:
    return crowd.site.family(crowd.dice.choice(WORKERS))


def _hit(depth: int, deed: str) -> Callable[[Crowd], bool | None]:
    def strike(crowd: Crowd) -> bool | None:
        family = _worker(crowd)
        if len(family) <= depth:
            return False
        getattr(family[depth], deed)()
        return None

    return strike


def _stop_worker(crowd: Crowd) -> None:
    crowd.site.stop_for(_worker(crowd), PAST_THE_LEASE_S)


def _hit_service(name: str, deed: str) -> Callable[[Crowd], None]:
    return lambda crowd: getattr(crowd.site.family(name)[0], deed)()


def _stop_service(name: str) -> Callable[[Crowd], None]:
    return lambda crowd: crowd.site.stop_for(crowd.site.family(name), PAST_THE_LEASE_S)


def _empty_redis(crowd: Crowd) -> None:
    with redis.Redis.from_url(crowd.site.redis.url) as connection:
        connection.flushall()


def _silence_redis(crowd: Crowd) -> None:
    process = crowd.site.redis.process
    assert process is not None
    crowd.site.stop_for([psutil.Process(process.pid)], PAST_THE_LEASE_S)


def _away(server: str, seconds: float) -> Callable[[Crowd], bool | None]:
    def strike(crowd: Crowd) -> bool | None:
        if crowd.site.stopped:
            return False  # a server that stands still cannot end
        which = getattr(crowd.site, server)
        which.stop()
        time.sleep(seconds)
        which.start()
        return None

    return strike


def _repeat_messages(crowd: Crowd) -> None:
    known = [Hint(0, run_id, Priority.NORMAL) for run_id in sorted(crowd.submitted)]
    broker.publish(broker.make_app(crowd.site.redis.url), crowd.dice.sample(known, min(5, len(known))) * 2)


def _cancel(crowd: Crowd) -> bool | None:
    run_id = crowd.some_run()
    if run_id is None or not crowd.ask(run_id, "cancel"):
        return False
    crowd.cancelled.add(run_id)
    return None


def _pause(crowd: Crowd) -> bool:
    run_id = crowd.some_run()
    return run_id is not None and crowd.ask(run_id, "pause")


def _damage_checkpoint(crowd: Crowd) -> bool | None:
    run_id = crowd.some_run()
    with crowd.sessions() as session:
        kept = checkpoints.newest_first(session, run_id) if run_id else []
    path = crowd.site.folder / "artifacts" / kept[0].path if kept else None
    if path is None or not path.exists():
        return False
    with path.open("r+b") as file:
        file.truncate(max(1, path.stat().st_size // 2))
    return None


FAULTS: dict[str, Callable[[Crowd], bool | None]] = {
    "kill -9 of a trainer": _hit(2, "kill"),
    "kill -9 of a pool child": _hit(1, "kill"),
    "kill -9 of a worker": _hit(0, "kill"),
    "SIGTERM to a trainer": _hit(2, "terminate"),
    "SIGTERM to a pool child": _hit(1, "terminate"),
    "SIGTERM to a worker": _hit(0, "terminate"),
    "worker stopped past its lease": _stop_worker,
    "kill -9 of the api": _hit_service("api", "kill"),
    "api stopped": _stop_service("api"),
    "kill -9 of the dispatcher": _hit_service("dispatcher", "kill"),
    "dispatcher stopped": _stop_service("dispatcher"),
    "redis emptied": _empty_redis,
    "redis silent": _silence_redis,
    "redis restarted": _away("redis", 1.0),
    "postgres restarted": _away("postgres", 0.0),
    "postgres away": _away("postgres", PAST_THE_LEASE_S),
    "messages repeated": _repeat_messages,
    "a run cancelled": _cancel,
    "a run paused": _pause,
    "newest checkpoint torn": _damage_checkpoint,
}
