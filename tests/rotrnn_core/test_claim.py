"""Is the claim only said where the numbers carry it?"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from rotrnn_core.claim import claim
from rotrnn_core.stability import Trace


def runs(cell: str, spreads: Sequence[float], *, depth: int = 2) -> list[Trace]:
    """One run per seed, whose every layer rises by the given share."""
    steps = np.array([0, 10])
    return [
        Trace("t", cell, depth, seed, steps, np.log([[1.0] * depth, [1.0 + spread] * depth]))
        for seed, spread in enumerate(spreads)
    ]


def verdicts(rotrnn: Sequence[float], **lru: Sequence[float]) -> tuple[bool | None, bool | None]:
    """What is seen of the two halves of the claim for the given growth per seed."""
    traces = runs("rotrnn", rotrnn) + [t for name, spreads in lru.items() for t in runs(f"lru-{name}", spreads)]
    found = claim(traces)
    return found.rotrnn_constant.seen, found.lru_not_constant.seen


@pytest.mark.parametrize(
    ("rotrnn", "learned", "seen"),
    [
        ([0.02, 0.03, 0.02], [1.0, 1.1, 0.9], (True, True)),
        ([0.50, 0.51, 0.52], [1.0, 1.1, 0.9], (False, True)),
        ([0.02, 0.03, 0.02], [0.03, 0.02, 0.02], (True, False)),
        ([0.50, 0.51, 0.52], [0.30, 0.31, 0.32], (False, False)),
        ([0.02, 0.03, 0.30], [0.2, 0.1, 2.0], (None, None)),
        ([0.02], [1.0], (None, None)),
    ],
)
def test_the_claim_follows_the_numbers(
    rotrnn: list[float], learned: list[float], seen: tuple[bool | None, bool | None]
) -> None:
    assert verdicts(rotrnn, learned=learned) == seen


def test_two_kinds_of_lru_that_disagree_leave_the_claim_undecided() -> None:
    assert verdicts([0.02, 0.02, 0.03], learned=[1.0, 1.1, 1.2], tied=[0.01, 0.02, 0.01]) == (True, None)


def test_without_runs_nothing_is_seen() -> None:
    found = claim([])
    assert found.rotrnn_constant.seen is found.lru_not_constant.seen is None
    assert "undecided" in found.sentence


def test_the_sentence_gives_range_factor_interval_and_count() -> None:
    found = claim([*runs("rotrnn", [0.02, 0.03, 0.02]), *runs("lru-learned", [1.0, 1.1, 0.9])])
    assert found.sentence.startswith("RotRNN's norm stays nearly constant and LRU's does not: seen.")
    assert "The relative norm of RotRNN stayed within 1.00-1.03 in 3 of 3 runs" in found.rotrnn_constant.text
    assert "The relative norm of LRU (learned) stayed within 1.00-2.10 in 3 of 3 runs" in found.lru_not_constant.text
    assert "95% interval" in found.sentence


def test_a_run_that_broke_speaks_against_a_constant_norm_and_is_named() -> None:
    steady = runs("rotrnn", [0.01, 0.01, 0.01])
    for lost in (
        replace(steady[0], seed=7, diverged=True),
        replace(steady[0], seed=7, log_norms=np.array([[0.0, 0.0], [np.nan, 0.0]])),
    ):
        found = claim([*steady, lost])
        assert found.rotrnn_constant.seen is False
        assert "in 3 of 4 runs (1 diverged or not finite: depth 2 seed 7)" in found.sentence


def test_without_rotrnn_at_equal_seeds_nothing_is_said_of_lru() -> None:
    found = claim(runs("lru-tied", [1.0, 1.1, 1.2])).lru_not_constant
    assert found.seen is None
    assert "no RotRNN run to compare with" in found.text


def test_norms_at_the_edge_of_what_a_float_holds_are_still_said() -> None:
    logs = np.log([[1e-300], [1e300]])
    traces = [Trace("t", "rotrnn", 1, seed, np.array([0, 10]), logs) for seed in range(2)]
    assert "e^1382" in claim(traces).sentence
