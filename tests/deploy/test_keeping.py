"""Is a service that ends started again at a growing pace, and given up in the end?"""

import subprocess
from dataclasses import dataclass

from deploy.local.keeping import CRASHES_ALLOWED, FIRST_DELAY_S, LONGEST_DELAY_S, STEADY_AFTER_S, Kept


@dataclass
class Fragile:
    """A service whose life the test holds in its hand."""

    name: str = "fragile"
    starts: int = 0
    lives: bool = False
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.starts += 1
        self.lives = True

    def alive(self) -> bool:
        return self.lives


class Clock:
    """Time that passes when told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def crash(service: Fragile, kept: Kept) -> float:
    """End the service and say how long the supervisor wants to wait."""
    service.lives = False
    kept.look()
    return (kept.due or 0.0) - kept.clock()


def test_a_living_service_is_left_alone() -> None:
    service = Fragile()
    kept = Kept(service)
    kept.start()
    assert kept.look() is None
    assert service.starts == 1


def test_each_crash_in_a_row_doubles_the_wait_up_to_a_limit_and_the_last_one_ends_it() -> None:
    service, clock = Fragile(), Clock()
    kept = Kept(service, clock)
    kept.start()
    waits = []
    for _ in range(CRASHES_ALLOWED):
        waits.append(crash(service, kept))
        assert kept.look() is None, "it was started before its time"
        clock.now += waits[-1]
        assert kept.look() is not None
    assert waits[:3] == [FIRST_DELAY_S, 2 * FIRST_DELAY_S, 4 * FIRST_DELAY_S]
    assert max(waits) == LONGEST_DELAY_S
    assert service.starts == 1 + CRASHES_ALLOWED == 1 + kept.restarts
    crash(service, kept)
    assert kept.given_up
    clock.now += 10 * LONGEST_DELAY_S
    assert kept.look() is None
    assert service.starts == 1 + CRASHES_ALLOWED


def test_a_steady_minute_earns_the_short_wait_again() -> None:
    service, clock = Fragile(), Clock()
    kept = Kept(service, clock)
    kept.start()
    for _ in range(3):
        clock.now += crash(service, kept)
        kept.look()
    clock.now += STEADY_AFTER_S + 1
    assert crash(service, kept) == FIRST_DELAY_S


def test_a_start_that_fails_counts_as_a_crash() -> None:
    class Broken(Fragile):
        def start(self) -> None:
            super().start()
            self.lives = False
            if self.starts > 1:
                raise OSError("no such program")

    service, clock = Broken(), Clock()
    kept = Kept(service, clock)
    kept.start()
    clock.now += crash(service, kept)
    assert "no such program" in (kept.look() or "")
    assert crash(service, kept) == 2 * FIRST_DELAY_S
