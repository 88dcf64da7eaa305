"""What can a test hold or bend in a process of ours? `Service.start` puts this on PYTHONPATH as sitecustomize.

WORKER_TEST_GATE names a file. While it exists, whoever brings a file onto the disk whose path contains the gate's words
stands still before it does so, having made the file GATE.reached; the words "trainer" hold a trainer at its start.
WORKER_TEST_CLOCK_S sets the process's clock off by so many seconds; that of the database and of the kernel stay.
"""

import datetime
import os
import sys
import time

_gate = os.environ.get("WORKER_TEST_GATE", "")
_off_s = float(os.environ.get("WORKER_TEST_CLOCK_S", "0"))
_fsync, _time, _sleep = os.fsync, time.time, time.sleep


def _wanted(place: str) -> bool:
    try:
        with open(_gate) as file:
            return file.read() in place
    except OSError:
        return False


def _hold(place: str) -> None:
    if _wanted(place):
        with open(f"{_gate}.reached", "w") as reached:
            reached.write(str(os.getpid()))
    while _wanted(place):
        _sleep(0.02)


def _held_fsync(file: "int | object") -> None:
    descriptor = file if isinstance(file, int) else file.fileno()  # type: ignore[attr-defined]
    _hold(os.readlink(f"/proc/self/fd/{descriptor}"))
    _fsync(descriptor)


if _gate:
    os.fsync = _held_fsync
    if "worker.trainer" in sys.orig_argv:
        _hold("trainer")

if _off_s:

    class _Wrong(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
            return super().now(tz) + datetime.timedelta(seconds=_off_s)

        @classmethod
        def utcnow(cls) -> datetime.datetime:
            return super().now(datetime.UTC).replace(tzinfo=None) + datetime.timedelta(seconds=_off_s)

    time.time = lambda: _time() + _off_s
    datetime.datetime = _Wrong  # type: ignore[misc]
