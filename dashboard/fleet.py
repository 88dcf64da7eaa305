"""What do the workers do, and what waits for them? Pace, order of the queue and reasons, from runs and beats."""

from collections.abc import Sequence
from datetime import datetime

from client import Run, Worker
from dashboard.palette import status_look
from dashboard.sheets import Sheet, title
from dashboard.words import NOTHING, duration, listed, plural

PRIORITIES = ("high", "normal", "low")
LONG_S = 20.0
"""A run that waits longer than this beside a free worker deserves a word."""


def steps_per_s(run: Run) -> float | None:
    """The pace of a run that trains, from the time that the API says is left; None before it is known."""
    left = run.total_steps - run.step
    if run.status != "running" or not run.seconds_left or not left:
        return None
    return left / run.seconds_left


def throughput(running: Sequence[Run]) -> float | None:
    """Steps per second over all runs that train; None while no pace is known."""
    known = [pace for pace in map(steps_per_s, running) if pace is not None]
    return sum(known) if known else None


def in_queue_order(queued: Sequence[Run]) -> list[Run]:
    """The order in which workers take them: by priority, then by the time since when they wait."""
    return sorted(queued, key=lambda run: (_rank(run.priority), run.queued_at or run.created_at))


def waits_for(run: Run, ahead: int, workers: Sequence[Worker], waited_s: float) -> str:
    """What a queued run waits for, in a few words.

    Args:
        run: It.
        ahead: How many runs are to be taken before it.
        workers: All that are known.
        waited_s: How long it has waited.
    """
    if run.waits_for:
        return run.waits_for
    alive = [worker for worker in workers if worker.state != "unknown"]
    again = f"tried {plural(run.attempt, 'time')} before ({run.reason}); " if run.attempt and run.reason else ""
    if not alive:
        return f"{again}no worker is alive"
    free = sum(worker.state == "idle" for worker in alive)
    if free > ahead:
        return f"{again}a pause before the next try" if again else _beside_a_free_worker(waited_s)
    place = f", {plural(ahead, 'run')} ahead" if ahead else ", next in line"
    return f"{again}{'the worker is' if len(alive) == 1 else f'all {len(alive)} workers are'} busy{place}"


def workers_sheet(workers: Sequence[Worker], running: Sequence[Run]) -> Sheet:
    """One line per worker, those that work first."""
    of_id = {run.id: run for run in running}
    rank = {"busy": 0, "idle": 1, "unknown": 2}
    ordered = sorted(workers, key=lambda worker: (rank.get(worker.state, 3), worker.id))
    runs = [of_id.get(worker.run_id or "") for worker in ordered]
    return {
        "State": [[worker.state] for worker in ordered],
        "Worker": [worker.id for worker in ordered],
        "Host": [worker.host for worker in ordered],
        "Device": [worker.device or NOTHING for worker in ordered],
        "Run": ["" if run is None else title(run) for run in runs],
        "Progress": [None if run is None else 100 * run.progress for run in runs],
        "Steps per second": [None if run is None else steps_per_s(run) for run in runs],
        "Memory": [NOTHING if worker.resident_mib is None else f"{worker.resident_mib:,} MiB" for worker in ordered],
        "Host has left": [_left(worker) for worker in ordered],
        "Data": [listed([*worker.data]) or NOTHING for worker in ordered],
        "Last beat": [f"{duration(worker.beat_age_s)} ago" for worker in ordered],
        "Since": [worker.started_at for worker in ordered],
    }


def queue_sheet(waiting: Sequence[Run], workers: Sequence[Worker], now: datetime) -> Sheet:
    """One line per run that waits, in the order in which they are taken."""
    waited = [(now - (run.queued_at or run.created_at)).total_seconds() for run in waiting]
    return {
        "Run": [title(run) for run in waiting],
        "Cell": [[run.cell] for run in waiting],
        "Depth": [run.depth for run in waiting],
        "Seed": [run.seed for run in waiting],
        "Priority": [run.priority for run in waiting],
        "Waits": [duration(seconds) for seconds in waited],
        "For": [
            waits_for(run, ahead, workers, seconds)
            if run.status == "queued"
            else f"{status_look(run.status).word.lower()} by hand, until it is resumed"
            for ahead, (run, seconds) in enumerate(zip(waiting, waited, strict=True))
        ],
    }


def _left(worker: Worker) -> str:
    """What the host has to spare of its memory."""
    if worker.host_available_mib is None or worker.host_total_mib is None:
        return NOTHING
    return f"{worker.host_available_mib / 1024:,.1f} of {worker.host_total_mib / 1024:,.1f} GiB"


def _rank(priority: str) -> int:
    return PRIORITIES.index(priority) if priority in PRIORITIES else len(PRIORITIES)


def _beside_a_free_worker(waited_s: float) -> str:
    if waited_s < LONG_S:
        return "a free worker takes it within seconds"
    return "a worker is free but does not take it: see the dispatcher's log"
