"""What happens in the process that computes? `python -m worker.trainer`: a job on stdin, messages on a pipe.

Started by a supervisor, killed by the kernel when that supervisor dies. SIGTERM asks for a checkpoint and an end;
while training has not begun there is nothing to keep, and the process ends at once. torch is imported only after the
bond with the parent is tied, since importing it takes seconds.
"""

import argparse
import gc
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from rotrnn_core.config import ConfigError, RunConfig
from rotrnn_core.records import Record
from store.status import FailureClass
from worker.artifacts import discard_unfinished, sha256
from worker.kinship import die_with
from worker.messages import Failure, Job, Log, Message, Progress, StoredCheckpoint, to_line

if TYPE_CHECKING:
    from rotrnn_core.training import Control

LONGEST_REASON = 500
PROGRESS_EVERY_S = 1.0
_NO_MEMORY = ("can't allocate memory", "out of memory")


class CheckpointDamaged(Exception):
    """A checkpoint's file is not what it was when it was written."""


class CheckpointGone(Exception):
    """A checkpoint's file is not there: deleted after newer ones were written, or on another machine."""


class ArtifactsAway(Exception):
    """The store of checkpoints does not answer."""


class Pipe:
    """Where messages go, each whole and at once."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor

    def send(self, message: Message) -> None:
        """Write one message, waiting while the supervisor does not read."""
        view = memoryview(to_line(message).encode() + b"\n")
        while view:
            view = view[os.write(self._descriptor, view) :]


class Stop:
    """What SIGTERM does: it ends the process before training, and asks the training for an end afterwards."""

    def __init__(self) -> None:
        self.control: Control | None = None
        signal.signal(signal.SIGTERM, self)

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        if self.control is None:
            os._exit(0)
        self.control.stop = True


def train(job: Job, pipe: Pipe, stop: Stop) -> None:
    """Run the job to its end, sending every record."""
    config = RunConfig.from_dict(job.config)
    gc.disable()  # an import makes objects by the hundred thousand, and looking for garbage among them costs a tenth
    import torch

    from rotrnn_core.training.memory import keep_freed_memory

    gc.freeze()
    gc.enable()
    torch.set_num_threads(job.threads)
    keep_freed_memory()
    control = control_that_tells(pipe)
    for record in _records(config, job, pipe, control):
        pipe.send(record)
        stop.control = control


def control_that_tells(pipe: Pipe, every_s: float = PROGRESS_EVERY_S) -> "Control":
    """A hand on the loop that says now and then how far it is: records may be far apart, and evaluations long."""
    from rotrnn_core.training import Control

    class Pace(Control):
        said_at = time.monotonic()

        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if name == "step" and time.monotonic() - self.said_at > every_s:
                pipe.send(Progress(self.step))
                super().__setattr__("said_at", time.monotonic())

    return Pace()


def _records(config: RunConfig, job: Job, pipe: Pipe, control: "Control") -> Iterator[Record]:
    """The training, from the newest checkpoint that can be gone on from, or else from the beginning."""
    from rotrnn_core.training import CheckpointUnusable, train

    def begin(resume_from: str | None) -> Iterator[Record]:
        records = train(
            config,
            data_dir=Path(job.data_dir),
            checkpoint_dir=job.checkpoint_dir,
            resume_from=resume_from,
            control=control,
        )
        return chain([next(records)], records)

    discard_unfinished(job.checkpoint_dir)
    gone = 0
    for checkpoint in job.checkpoints:
        try:
            check(checkpoint)
            records = begin(checkpoint.path)
        except CheckpointGone:
            gone += 1
            continue
        except (CheckpointUnusable, CheckpointDamaged) as error:
            pipe.send(Log("warning", f"the checkpoint of step {checkpoint.step} is passed over: {error}"))
            continue
        if gone:
            pipe.send(Log("warning", f"newer checkpoints that are not there any more: {gone}"))
        pipe.send(Log("info", f"training goes on from the checkpoint of step {checkpoint.step}"))
        return records
    if job.checkpoints:
        pipe.send(Log("warning", "no checkpoint can be gone on from: training starts from the beginning"))
    return begin(None)


def check(checkpoint: StoredCheckpoint) -> None:
    """Whether the file is the one that was stored.

    Raises:
        CheckpointDamaged: It cannot be read, or its hash is another one.
        CheckpointGone: It is not there.
        ArtifactsAway: It lies in a store that does not answer: no reason to begin anew.
    """
    try:
        found = sha256(checkpoint.path)
    except FileNotFoundError as error:
        raise CheckpointGone from error
    except Exception as error:
        if "://" in checkpoint.path:
            raise ArtifactsAway(f"{checkpoint.path} cannot be read now: {type(error).__name__}: {error}") from error
        raise CheckpointDamaged(f"{type(error).__name__}: {error}") from error
    if found != checkpoint.sha256:
        raise CheckpointDamaged(f"its SHA-256 is {found}, and was {checkpoint.sha256} when it was written")


def failure_of(error: Exception) -> Failure:
    """Class and reason of an exception; its traceback belongs into the log.

    torch and the tasks may not be imported yet, or may have failed to import, so their exceptions go by name.
    """
    text = str(error).strip()
    names = {base.__name__ for base in type(error).__mro__}
    if isinstance(error, ConfigError):
        return Failure(FailureClass.BAD_CONFIG, _cut(text))
    if "ArtifactsAway" in names:
        return Failure(FailureClass.WORKER_LOST, _cut(text))
    if "DataMissing" in names:
        return Failure(FailureClass.DATA_MISSING, _cut(text))
    no_memory = isinstance(error, RuntimeError) and any(words in text for words in _NO_MEMORY)
    failure_class = FailureClass.CODE_ERROR
    if no_memory or names & {"MemoryError", "OutOfMemoryError"}:
        failure_class = FailureClass.OUT_OF_MEMORY
    return Failure(failure_class, _cut(f"{type(error).__name__}: {text}" if text else type(error).__name__))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 3] + "..."


def main() -> int:
    """Train what stdin says; 0 unless training failed."""
    parser = argparse.ArgumentParser(prog="python -m worker.trainer")
    parser.add_argument("--messages", type=int, required=True, help="descriptor of the pipe that takes the messages")
    parser.add_argument("--parent", type=int, required=True, help="process id of the supervisor")
    arguments = parser.parse_args()
    die_with(arguments.parent)
    stop = Stop()
    pipe = Pipe(arguments.messages)
    try:
        train(Job.from_json(sys.stdin.read()), pipe, stop)
    except Exception as error:  # noqa: BLE001 - the edge: the run becomes failed with its reason
        pipe.send(Log("error", traceback.format_exc()))
        pipe.send(failure_of(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
