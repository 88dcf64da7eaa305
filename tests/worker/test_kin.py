"""Do a worker's processes die and stop together?"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from worker.lifeline import Lifeline
from worker.messages import Job

ROOT = Path(__file__).parents[2]
JOB = Job({"task": {"name": "listops-short"}}, "/nonexistent", "/nonexistent", (), 1).to_json()


def test_a_lifeline_is_seen_cut_in_a_child_also_when_the_parent_dies() -> None:
    lifeline = Lifeline.make()
    assert not lifeline.is_cut
    child = os.fork()
    if child == 0:
        lifeline.watch()
        before = lifeline.is_cut
        while not lifeline.is_cut:
            time.sleep(0.01)
        os._exit(1 if before else 0)
    time.sleep(0.05)
    lifeline.cut()
    lifeline.cut()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_trainer_whose_parent_is_gone_ends_at_once() -> None:
    command = [sys.executable, "-m", "worker.trainer", "--messages", "1", "--parent", "1"]
    done = subprocess.run(command, cwd=ROOT, input=JOB.encode(), capture_output=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stdout == b""


def test_a_trainer_dies_with_a_parent_that_is_killed() -> None:
    script = (
        "import os, subprocess, sys, time\n"
        "command = [sys.executable, '-m', 'worker.trainer', '--messages', '1', '--parent', str(os.getpid())]\n"
        "child = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    trainer = psutil.Process(int(parent.stdout.readline()))
    while b"worker.trainer" not in " ".join(trainer.cmdline()).encode() or not _bound(trainer):
        time.sleep(0.02)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    _, alive = psutil.wait_procs([trainer], timeout=5)
    assert alive == []


def _bound(trainer: psutil.Process) -> bool:
    """Whether it has come so far as to catch SIGTERM, which it does right after it is bound to its parent."""
    status = Path(f"/proc/{trainer.pid}/status").read_text()
    (caught,) = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")]
    return bool(int(caught, 16) & 1 << (signal.SIGTERM - 1))
