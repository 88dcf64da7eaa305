"""Does a training process keep the memory that its tensors free?"""

import subprocess
import sys

import pytest

SCRIPT = """
import resource, statistics, sys
import torch
from rotrnn_core.training.memory import keep_freed_memory

kept = keep_freed_memory() if sys.argv[1] == "kept" else True
def faults_of_a_tensor():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.full((16 * 2**20,), 1.0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults = [faults_of_a_tensor() for _ in range(40)]
print(int(kept), statistics.median(faults[20:]))
"""


def test_a_tensor_of_a_size_that_was_there_before_costs_no_page_faults() -> None:
    def run(how: str) -> tuple[float, float]:
        done = subprocess.run([sys.executable, "-c", SCRIPT, how], capture_output=True, text=True, check=True)
        knows, faults = map(float, done.stdout.split())
        return knows, faults

    knows, faults = run("kept")
    if not knows:
        pytest.skip("this C library has no mallopt")
    assert faults < 100
    assert run("returned")[1] > 10 * max(faults, 1), "the default costs nothing here: the setting can go"
