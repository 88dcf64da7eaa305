"""Are the stability numbers what their definitions say, and is the claim only said where the numbers carry it?"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rotrnn_core.stability import (
    Trace,
    final_level,
    report,
    settling_step,
    spread_over_layers,
    spread_over_training,
)


def trace(
    norms: Sequence[Sequence[float]], *, cell: str = "rotrnn", depth: int | None = None, seed: int = 0, task: str = "t"
) -> Trace:
    """A trace of the given relative norms (recorded, layers), recorded every ten steps."""
    values = np.asarray(norms, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(values)
    return Trace(task, cell, depth or values.shape[1], seed, 10 * np.arange(len(values)), logs, run_id=f"{cell}/{seed}")


def runs(cell: str, spreads: Sequence[float], *, depth: int = 2) -> list[Trace]:
    """One run per seed, whose every layer rises by the given factor."""
    return [trace([[1.0] * depth, [1.0 + s] * depth], cell=cell, seed=seed) for seed, s in enumerate(spreads)]


def value_of(traces: Sequence[Trace], measure: str) -> tuple[float | None, float | None, float | None, int]:
    """The one row of a measure."""
    (row,) = [row for row in report(traces).rows if row.measure == measure]
    return row.value.estimate, row.value.low, row.value.high, row.value.n


def test_the_spread_over_training_is_the_mean_over_layers_of_each_layers_range() -> None:
    assert spread_over_training(trace([[1, 1], [2, 0.5], [1.5, 4]])) == pytest.approx((math.log(2) + math.log(8)) / 2)


def test_the_spread_over_layers_is_read_at_the_last_step_and_a_single_layer_has_none() -> None:
    assert spread_over_layers(trace([[1, 9, 1], [2, 8, 4]])) == pytest.approx(math.log(4))
    assert spread_over_layers(trace([[1], [2]])) is None


@pytest.mark.parametrize(
    ("norms", "step"),
    [
        ([1, 1.05, 1.0], 0),
        ([1, 2, 2.1, 2.0], 10),
        ([2, 1, 2, 1, 1.05], 30),
        ([1, 1, 1, 1.5], 30),
        ([1.1001, 1.0], 10),
        ([1.0999, 1.0], 0),
    ],
)
def test_a_layer_has_settled_once_it_never_leaves_ten_per_cent_of_its_last_value(
    norms: list[float], step: float
) -> None:
    assert settling_step(trace([[value] for value in norms])) == step


def test_the_settling_step_is_that_of_the_latest_layer() -> None:
    assert settling_step(trace([[1, 2], [1, 2], [1, 1], [1, 1]])) == 20


@given(
    st.lists(st.lists(st.floats(0.01, 100), min_size=3, max_size=3), min_size=2, max_size=8),
    st.floats(0.01, 100),
)
def test_no_spread_depends_on_the_unit_of_the_norm(norms: list[list[float]], unit: float) -> None:
    one, other = trace(norms), trace([[unit * value for value in row] for row in norms])
    assert spread_over_training(other) == pytest.approx(spread_over_training(one), abs=1e-9)
    assert spread_over_layers(other) == pytest.approx(spread_over_layers(one), abs=1e-9)
    assert final_level(other) == pytest.approx(final_level(one) + math.log(unit), abs=1e-9)


def test_below_two_seeds_there_is_no_interval() -> None:
    assert value_of(runs("rotrnn", [0.2]), "spread_over_training") == (pytest.approx(math.log(1.2)), None, None, 1)
    assert value_of(runs("rotrnn", [0.2]), "spread_over_seeds") == (None, None, None, 1)


def test_an_interval_of_a_spread_never_reaches_below_zero() -> None:
    _, low, high, _ = value_of(runs("rotrnn", [0.0, 1.0]), "spread_over_training")
    assert low == 0
    assert high is not None
    assert high > 0


def test_the_spread_over_seeds_is_the_deviation_of_the_last_level() -> None:
    estimate, _, _, n = value_of(runs("rotrnn", [0.1, 0.5, 0.3]), "spread_over_seeds")
    assert estimate == pytest.approx(np.std(np.log([1.1, 1.5, 1.3]), ddof=1))
    assert n == 3


def test_several_runs_of_one_seed_count_once() -> None:
    twice = [*runs("rotrnn", [0.1, 0.5]), *(replace(t, run_id="again") for t in runs("rotrnn", [0.1, 0.5]))]
    assert value_of(twice, "spread_over_training") == value_of(runs("rotrnn", [0.1, 0.5]), "spread_over_training")


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0])
def test_a_run_that_is_not_finite_leaves_every_estimate_and_is_named(bad: float) -> None:
    lost = trace([[1, 1], [bad, 1]], seed=7)
    found = report([*runs("rotrnn", [0.1, 0.2]), lost])
    assert {row.value.n for row in found.rows} == {2}
    assert [t.run_id for t in found.broken] == ["rotrnn/7"]


def test_a_diverged_run_counts_as_broken_even_if_its_trace_is_finite() -> None:
    found = report([*runs("rotrnn", [0.01, 0.01]), replace(runs("rotrnn", [0.01])[0], seed=9, diverged=True)])
    assert [t.seed for t in found.broken] == [9]
    assert {row.value.n for row in found.rows} == {2}


def test_a_cell_that_records_no_norms_has_an_accuracy_only() -> None:
    empty = [Trace("t", "transformer", 2, s, np.array([], int), np.empty((0, 2)), accuracy=0.5) for s in range(2)]
    found = report(empty)
    assert found.rows == ()
    assert (found.accuracy[0].value.estimate, found.accuracy[0].value.n) == (0.5, 2)


def test_a_cell_of_which_every_run_broke_still_has_its_rows() -> None:
    rows = report([replace(t, diverged=True) for t in runs("lru-tied", [1, 2])]).rows
    assert {row.measure for row in rows} == {
        "spread_over_training", "spread_over_layers", "spread_over_seeds", "settling_step",
    }  # fmt: skip
    assert {(row.value.estimate, row.value.n) for row in rows} == {(None, 0)}


def test_an_unrelated_group_changes_no_other_groups_numbers() -> None:
    alone = report(runs("rotrnn", [0.1, 0.2, 0.4]))
    beside = report([*runs("rotrnn", [0.1, 0.2, 0.4]), *runs("lru-tied", [3, 4], depth=5)])
    assert [row for row in beside.rows if row.cell == "rotrnn"] == list(alone.rows)


def test_differences_are_taken_at_equal_depth_and_seed() -> None:
    traces = [
        *runs("rotrnn", [0.1, 0.2, 0.3]),
        *runs("lru-learned", [1.1, 1.2, 1.3, 50]),
        *runs("lru-learned", [9], depth=4),
    ]
    (at_two, over_all) = report(traces).paired
    expected = [math.log((2 + s) / (1 + s)) for s in (0.1, 0.2, 0.3)]
    assert (at_two.depth, over_all.depth) == (2, None)
    assert at_two.difference.estimate == pytest.approx(np.mean(expected))
    assert at_two.difference.n == over_all.difference.n == 3


def test_over_all_depths_the_seeds_are_the_unit_and_each_depth_weighs_the_same() -> None:
    traces = [
        t
        for cell, factor in (("rotrnn", 0.0), ("lru-tied", 1.0))
        for depth, seeds in ((1, 3), (2, 2))
        for t in runs(cell, [factor * (depth + seed) for seed in range(seeds)], depth=depth)
    ]
    (pooled,) = [p for p in report(traces).paired if p.depth is None]
    assert pooled.difference.n == 2
    assert pooled.difference.estimate == pytest.approx(np.mean(np.log([2, 3, 3, 4])))


def test_settling_is_compared_at_equal_depth_and_seed_too() -> None:
    early, late = [[1.0], [2.0], [2.0], [2.0]], [[1.0], [1.0], [1.0], [2.0]]
    traces = [
        trace(norms, cell=cell, seed=seed)
        for seed in range(2)
        for cell, norms in (("rotrnn", early), ("lru-learned", late))
    ]
    at_one, over_all = report(traces).paired_settling
    assert (at_one.measure, at_one.depth, over_all.depth) == ("settling_step", 1, None)
    assert (at_one.difference.estimate, at_one.difference.n) == (20, 2)
    assert {row.measure for row in report(traces).paired} == {"spread_over_training"}


def test_the_spread_over_depth_is_that_of_the_last_levels_by_the_seeds_that_have_every_depth() -> None:
    def ended(last: Sequence[float], seed: int) -> Trace:
        return trace([[1.0] * len(last), last], seed=seed)

    traces = [ended([2], 0), ended([4, 1], 0), ended([8, 8, 8], 0)]
    traces += [ended([3], 1), ended([3, 3], 1), ended([3, 3, 3], 1), ended([99], 2)]
    (found,) = report(traces).over_depth
    assert (found.depths, found.value.n) == ((1, 2, 3), 2)
    # Seed 0 ends at ln 2, (ln 4 + ln 1) / 2 and ln 8; seed 1 at ln 3 throughout.
    assert found.value.estimate == pytest.approx((math.log(8) - math.log(2)) / 2)
    assert report([ended([2], 0), ended([3], 1)]).over_depth == ()
