"""How is a child process started so that it can't outlive us unseen, and how is it ended?"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

PR_SET_PDEATHSIG = 1


def spawn(
    command: Sequence[str | Path],
    *,
    log: Path,
    env: Mapping[str, str],
    cwd: Path,
    death_signal: signal.Signals = signal.SIGTERM,
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, its output appended to a log.

    The terminal's Ctrl-C doesn't reach it: who started it ends it. On Linux the kernel sends it the death signal
    when the thread that started it dies.

    Args:
        command: Program and arguments.
        log: File that stdout and stderr are appended to.
        env: The whole environment.
        cwd: Working folder.
        death_signal: What the process gets when its parent is killed.
    """
    with log.open("ab") as output:
        return subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
            preexec_fn=_die_with_parent(death_signal),
        )


def end(*processes: subprocess.Popen[bytes], first: signal.Signals = signal.SIGTERM, grace_s: float) -> None:
    """End processes that `spawn` started: ask all of them once, wait, then kill them and what is left of their groups.

    A group is killed before its leader is reaped, while its number can't belong to anybody else.

    Args:
        processes: What `spawn` returned; those reaped already are left out.
        first: The signal that asks.
        grace_s: How long they may take to answer, all together.
    """
    alive = [process for process in processes if process.returncode is None]
    for process in alive:
        os.kill(process.pid, first)
    deadline = time.monotonic() + grace_s
    for process in alive:
        while not _has_ended(process.pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        _kill_group_and_reap(process)


def ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process that `spawn` started has ended; what it left in its group is ended with it."""
    if process.returncode is None and _has_ended(process.pid):
        _kill_group_and_reap(process)
    return process.returncode is not None


def _kill_group_and_reap(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _has_ended(pid: int) -> bool:
    return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def _die_with_parent(death_signal: signal.Signals) -> Callable[[], None] | None:
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def ask_kernel() -> None:
        prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return ask_kernel
