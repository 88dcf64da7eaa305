"""Are the intervals over seeds those of the textbooks, and the bootstrap's those of every resample?"""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rotrnn_core.intervals import RESAMPLES, deviation_with_interval, mean_with_interval, resamples

finite = st.floats(-1e6, 1e6)


@given(st.lists(finite, min_size=2, max_size=12))
def test_the_interval_of_a_mean_is_that_of_student(values: list[float]) -> None:
    found = mean_with_interval(values)
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    half = float(stats.t.ppf(0.975, len(values) - 1)) * error
    assert found.low == pytest.approx(np.mean(values) - half, rel=1e-9, abs=1e-6)
    assert found.high == pytest.approx(np.mean(values) + half, rel=1e-9, abs=1e-6)
    assert found.n == len(values)


@given(st.lists(finite, min_size=2, max_size=12))
def test_the_interval_of_a_deviation_is_that_of_chi_square(values: list[float]) -> None:
    found, n, deviation = deviation_with_interval(values), len(values), float(np.std(values, ddof=1))
    assert found.low == pytest.approx(deviation * math.sqrt((n - 1) / stats.chi2.ppf(0.975, n - 1)), rel=1e-9)
    assert found.high == pytest.approx(deviation * math.sqrt((n - 1) / stats.chi2.ppf(0.025, n - 1)), rel=1e-9)


def test_intervals_of_normal_seeds_cover_the_truth_nineteen_times_in_twenty() -> None:
    draws = np.random.default_rng(0).normal(3, 2, (2000, 4))
    means = [mean_with_interval(list(row)) for row in draws]
    deviations = [deviation_with_interval(list(row)) for row in draws]
    four_errors = 4 * math.sqrt(0.95 * 0.05 / len(draws))
    for found, truth in ((means, 3), (deviations, 2)):
        covered = np.mean([e.low is not None and e.high is not None and e.low <= truth <= e.high for e in found])
        assert abs(covered - 0.95) < four_errors


@given(st.lists(finite, min_size=2, max_size=5))
@settings(max_examples=30)
def test_of_few_seeds_every_resample_counts(values: list[float]) -> None:
    every = np.array(list(product(values, repeat=len(values))))
    for found, statistics in (
        (mean_with_interval(values), every.mean(axis=1)),
        (deviation_with_interval(values), every.std(axis=1, ddof=1)),
    ):
        low, high = np.quantile(statistics, [0.025, 0.975])
        tolerance = 1e-9 * max(map(abs, values))
        assert found.bootstrap_low == pytest.approx(low, abs=tolerance)
        assert found.bootstrap_high == pytest.approx(high, abs=tolerance)


@given(st.lists(finite, min_size=2, max_size=12), finite, st.floats(0.001, 1000))
@settings(max_examples=50)
def test_a_bootstrap_interval_follows_shift_and_unit_and_holds_no_value_that_no_seed_reached(
    values: list[float], shift: float, unit: float
) -> None:
    found, moved = mean_with_interval(values), mean_with_interval([unit * value + shift for value in values])
    assert found.bootstrap_low is not None
    assert found.bootstrap_high is not None
    assert min(values) - 1e-6 <= found.bootstrap_low <= found.bootstrap_high <= max(values) + 1e-6
    assert moved.bootstrap_low == pytest.approx(unit * found.bootstrap_low + shift, rel=1e-9, abs=1e-3)
    assert moved.bootstrap_high == pytest.approx(unit * found.bootstrap_high + shift, rel=1e-9, abs=1e-3)


def test_many_seeds_are_resampled_the_same_way_each_time() -> None:
    values = list(np.random.default_rng(1).normal(size=20))
    assert resamples(values).shape == (RESAMPLES, 20)
    assert mean_with_interval(values) == mean_with_interval(values)


def test_with_many_seeds_the_bootstrap_covers_the_truth_nearly_nineteen_times_in_twenty() -> None:
    draws = np.random.default_rng(0).normal(3, 2, (1000, 30))
    found = [mean_with_interval(list(row)) for row in draws]
    covered = np.mean([e.bootstrap_low <= 3 <= e.bootstrap_high for e in found])  # type: ignore[operator]
    # Its deviation lacks the factor sqrt(n / (n - 1)) and its quantiles are normal: .941 at n = 30 in theory.
    theory = 2 * stats.t.cdf(1.96 * math.sqrt(29 / 30), 29) - 1
    assert abs(covered - theory) < 4 * math.sqrt(0.95 * 0.05 / len(draws))


def test_below_two_values_there_is_no_interval() -> None:
    for found in (mean_with_interval([1.0]), deviation_with_interval([1.0]), mean_with_interval([])):
        assert (found.low, found.high, found.bootstrap_low, found.bootstrap_high) == (None, None, None, None)
