"""Is a run lost, doubled or stuck when everything fails at random? `python tests/chaos/main.py --minutes 10 --seed 1`.

A stack of its own (Postgres, Redis, API, dispatcher, two workers) gets runs all the time and a fault every few seconds.
In the end everything heals, and each run must have ended exactly as it would have without any fault. The last line
counts; the exit code is 1 if anything was lost, doubled, stuck or left running.
"""

import argparse
import contextlib
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil
import redis
from crowd import Crowd
from faults import FAULTS
from grounds import TOKEN, opened, say
from reckoning import reckon
from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError

from store import tokens
from store.engine import make_engine, session_factory
from store.status import TERMINAL
from store.tables import RunRow
from worker import broker

HEALED_WITHIN_S = 300.0


def _strike(crowd: Crowd, struck: Counter[str]) -> None:
    """One fault of a random kind, where it can strike now."""
    name, deed = crowd.dice.choice(list(FAULTS.items()))
    with contextlib.suppress(psutil.Error, DBAPIError, redis.RedisError, broker.BrokerAway):
        if deed(crowd) is not False:
            struck[name] += 1
            say(f"{time.strftime('%H:%M:%S')} {name}")


def main() -> int:
    """Run, strike, heal, reckon."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="leave the folder with the logs")
    wanted = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="rotbench-chaos-"))
    folder.chmod(0o755)
    say(f"logs in {folder}")
    with opened(folder) as site:
        sessions = session_factory(make_engine(site.postgres.url, application_name="chaos", connect_timeout_s=5))
        with sessions.begin() as session:
            tokens.ensure(session, "chaos", TOKEN)
        crowd = Crowd(site, sessions, random.Random(wanted.seed))
        struck: Counter[str] = Counter()
        ends_at = time.monotonic() + wanted.minutes * 60
        strikes_at = time.monotonic() + 10
        heals_until = ends_at + HEALED_WITHIN_S
        while time.monotonic() < heals_until:
            striking = time.monotonic() < ends_at
            site.keep()
            with contextlib.suppress(DBAPIError):
                crowd.nurse()
                if striking or crowd.asked:
                    crowd.feed()
                if not striking and not crowd.asked and all(r.status in TERMINAL for r in crowd.states().values()):
                    break
            if striking and time.monotonic() > strikes_at:
                _strike(crowd, struck)
                strikes_at = time.monotonic() + crowd.dice.uniform(1.0, 5.0)
            time.sleep(0.3)
        lost, doubled, stuck = reckon(crowd)
        with sessions() as session:
            tries = session.scalar(select(func.sum(RunRow.attempt)))
        orphans = site.end()
    for name, number in sorted(struck.items()):
        say(f"{number:5d} {name}")
    bad = lost + doubled + stuck + orphans
    if not (bad or wanted.keep):
        shutil.rmtree(folder)
    say(
        f"seed {wanted.seed}, {wanted.minutes:g} min: {sum(struck.values())} faults injected, "
        f"{len(crowd.submitted)} runs in {tries} attempts, {crowd.resumed} resumed by hand: "
        f"{lost} lost, {doubled} doubled, {stuck} stuck, {orphans} orphans"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
