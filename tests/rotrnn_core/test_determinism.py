"""Does the same configuration give the same data everywhere, and does a run say what else decides its numbers?"""

import hashlib

import numpy as np
import pytest

from rotrnn_core.config import TrainingConfig
from rotrnn_core.tasks.listops import generate
from rotrnn_core.training.environment import device_of, environment_of

GOLDEN = {
    range(20, 201): "39d4edb982872c1756a044cd6757c131b02fed641afc021bbd750b6085fcdca3",
    range(501, 2000): "2121453ce9844043bfb3ecaedbb42956cb0ca307a0ec16eb3f640669a7c71bb4",
}
"""SHA-256 of a small sample from seed 7, as every machine must draw it."""


def digest(lengths: range, seed: int) -> str:
    """Of the tokens, lengths and labels of all splits, in bytes of one width and order on every machine."""
    data = generate(lengths, seed, train=30, validation=5, test=5)
    found = hashlib.sha256()
    for part in (data.train, data.validation, data.test):
        for array in (part.inputs, part.offsets, part.labels):
            found.update(np.ascontiguousarray(array, dtype="<i8").tobytes())
    return found.hexdigest()


@pytest.mark.parametrize("lengths", GOLDEN)
def test_listops_is_drawn_alike_on_every_machine(lengths: range) -> None:
    assert digest(lengths, 7) == GOLDEN[lengths]


def test_another_seed_draws_other_data() -> None:
    assert digest(range(20, 201), 8) != digest(range(20, 201), 7)


def test_the_record_of_a_run_names_every_setting_that_decides_its_numbers() -> None:
    said = environment_of(device_of(TrainingConfig(device="cpu")), "torch")
    assert {
        "torch", "numpy", "python", "cpu_capability", "dtype", "threads", "scan_backend", "deterministic_algorithms",
        "float32_matmul_precision",
    } <= said.keys()  # fmt: skip
    assert said["dtype"] == "float32"
    assert said["scan_backend"] == "torch"
