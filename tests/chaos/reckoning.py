"""Has every run ended as it would have without a fault? Compared with trainings that nothing disturbs."""

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

from crowd import Crowd
from grounds import ROOT, config_of, say

from rotrnn_core.records import Evaluation, Loss, from_line
from store import attempts, metrics
from store.status import TERMINAL, Outcome, Status


def undisturbed(steps: int, folder: Path) -> dict[tuple[str, int], str]:
    """Series and step to the bits of each value of a training that nothing disturbs."""
    script = (
        "import json, pathlib, sys, torch\n"
        "from rotrnn_core.config import RunConfig\n"
        "from rotrnn_core.records import to_line\n"
        "from rotrnn_core.training import train\n"
        "torch.set_num_threads(1)\n"
        "for record in train(RunConfig.from_dict(json.loads(sys.argv[1])), data_dir=pathlib.Path(sys.argv[2])):\n"
        "    print(to_line(record))\n"
    )
    command = [sys.executable, "-c", script, json.dumps(config_of(steps)), str(folder / "datasets")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    said = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    found = {}
    for record in map(from_line, said.splitlines()):
        if isinstance(record, Loss | Evaluation):
            found |= {
                (key, record.step): value.hex() for key, value in record.metrics().items() if key != "tokens_per_s"
            }
    return found


def reckon(crowd: Crowd) -> tuple[int, int, int]:
    """How many runs were lost, doubled and stuck; each is said with its reason."""
    lost = doubled = stuck = 0
    states = crowd.states()
    expected = {steps: undisturbed(steps, crowd.site.folder) for steps in set(crowd.submitted.values())}
    for run_id in crowd.submitted.keys() - states.keys():
        say(f"lost: {run_id} was accepted and is not there")
        lost += 1
    doubled += max(0, len(states) - len(crowd.submitted))
    for run_id, run in states.items():
        with crowd.sessions() as session:
            tries = attempts.read(session, run_id)
            series = metrics.read(session, run_id)
        if run.status not in TERMINAL:
            say(f"stuck: {run_id} is {run.status}, attempt {run.attempt}")
            stuck += 1
        elif run.status is Status.CANCELLED and run_id in crowd.cancelled:
            continue
        elif run.status is not Status.SUCCEEDED:
            say(f"lost: {run_id} is {run.status}: {run.failure_class} {run.reason}")
            lost += 1
        else:
            read = {(s.key, step): v.hex() for s in series for step, v in zip(s.steps, s.values, strict=True)}
            read = {place: value for place, value in read.items() if place[0] != "tokens_per_s"}
            if read != expected[run.total_steps]:
                say(f"lost: the series of {run_id} are not those of an undisturbed run")
                lost += 1
        overlapping = any(one.ended_at is None or one.ended_at > other.started_at for one, other in pairwise(tries))
        repeated = any(len(s.steps) != len(set(s.steps)) for s in series)
        if overlapping or repeated or sum(each.outcome is Outcome.SUCCEEDED for each in tries) > 1:
            say(f"doubled: {run_id}")
            doubled += 1
    return lost, doubled, stuck
