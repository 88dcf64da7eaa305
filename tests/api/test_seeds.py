"""Are the statistics over seeds those that one computes by hand, and does no group depend on another?"""

import json
import math
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from api.bootstrap import LEAST_FOR_BCA, mean_intervals
from api.differences import holm, paired
from api.groups import Curve, over_seeds
from api.survival import Life, survival, wilson
from store.status import Status


def get(door: Any, path: str, **query: Any) -> Any:
    answer = door.http.get(f"/v1/compare/{path}", params=query)
    assert answer.status_code == 200, answer.text
    return json.loads(answer.text, parse_constant=lambda name: pytest.fail(f"bare {name} in JSON"))


def trained(door: Any, cell: Any, seed: int, values: dict[int, float], **more: Any) -> UUID:
    key, status = more.pop("key", "train_loss"), more.pop("status", Status.SUCCEEDED)
    depth = more.pop("depth", 1)
    run_id: UUID = door.submit(model={"cell": cell, "n_layers": depth}, training={"seed": seed, **more})
    points = [(key, step, value) for step, value in values.items()]
    door.train(run_id, metrics=points, norms={0: [1.0] * depth, 5: [1.0 + seed] * depth}, status=status)
    return run_id


@given(st.integers(1, 12), st.integers(1, 4), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_each_statistic_is_that_of_the_finite_values(n: int, steps: int, random: Any) -> None:
    rng = np.random.default_rng(random.randrange(2**32))
    values = rng.normal(size=(n, steps))
    values[rng.random((n, steps)) < 0.2] = rng.choice([np.nan, np.inf, -np.inf])
    found = over_seeds([Curve(seed, np.arange(steps), values[seed].reshape(-1, 1)) for seed in range(n)])
    for step in range(steps):
        finite = values[:, step][np.isfinite(values[:, step])]
        k = finite.size
        assert (found.n[step, 0], found.non_finite[step, 0]) == (k, n - k)
        shown = [getattr(found, name)[step, 0] for name in ("mean", "median", "iqm", "minimum", "maximum")]
        if not k:
            assert np.isnan(shown).all()
            continue
        expected = [finite.mean(), np.median(finite), stats.trim_mean(finite, 0.25), finite.min(), finite.max()]
        np.testing.assert_allclose(shown, expected, rtol=1e-12, atol=1e-14)
        if k >= 2:
            low, high = stats.t.interval(0.95, k - 1, finite.mean(), stats.sem(finite))
            np.testing.assert_allclose([found.low[step, 0], found.high[step, 0]], [low, high], rtol=1e-9, atol=1e-12)
        else:
            assert np.isnan(found.low[step, 0])


def test_a_long_comparison_says_step_for_step_what_a_short_one_says(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).normal(size=(3, 50, 2))
    values[0, 7], values[:, 20] = np.nan, np.inf
    curves = [Curve(seed, np.arange(50), values[seed]) for seed in range(3)]
    whole = over_seeds(curves)
    monkeypatch.setattr("api.groups._NUMBERS_AT_ONCE", 3 * 2 * 7)
    cut = over_seeds(curves)
    for name in ("n", "mean", "median", "iqm", "low", "high", "minimum", "maximum", "non_finite"):
        np.testing.assert_array_equal(getattr(cut, name), getattr(whole, name), err_msg=name)


def test_the_bootstrap_interval_is_bca_from_eight_seeds_on() -> None:
    values = np.random.default_rng(3).lognormal(sigma=0.5, size=20)
    (low,), (high,) = mean_intervals(values[:, None])
    expected = stats.bootstrap((values,), np.mean, method="BCa", n_resamples=50_000, rng=1).confidence_interval
    np.testing.assert_allclose([low, high], expected, rtol=0.02)
    plain = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=50_000, rng=1).confidence_interval
    assert high > plain.high, "a skewed sample moves BCa's interval to its long side"
    assert LEAST_FOR_BCA == 8


def test_the_bootstrap_of_few_seeds_is_the_percentile_of_all_resamples() -> None:
    values = np.array([1.0, 2.0, 4.0])
    (low,), (high,) = mean_intervals(values[:, None])
    means = [np.mean([a, b, c]) for a in values for b in values for c in values]
    np.testing.assert_allclose([low, high], np.quantile(means, [0.025, 0.975]))


def test_missing_seeds_and_equal_values_have_honest_bootstrap_intervals() -> None:
    values = np.array([[1.0, 5.0, np.nan], [2.0, 5.0, np.nan], [np.nan, 5.0, 3.0]])
    low, high = mean_intervals(values)
    assert (low[1], high[1]) == (5.0, 5.0)
    assert np.isnan([low[2], high[2]]).all()
    np.testing.assert_allclose([low[0], high[0]], [a[0] for a in mean_intervals(values[:2, :1])])


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_gives_what_its_definition_gives(p_values: list[float]) -> None:
    corrected = holm([*p_values, None])
    assert corrected[-1] is None
    order = np.argsort(p_values, kind="stable")
    m = len(p_values)
    for place, at in enumerate(order):
        assert corrected[at] == max(min(1.0, (m - j) * p_values[order[j]]) for j in range(place + 1))


def test_a_paired_difference_is_the_paired_t_test() -> None:
    one, other = ({seed: float(v) for seed, v in enumerate(np.random.default_rng(k).normal(k, 1, 7))} for k in (0, 1))
    found = paired(one | {99: 1.0}, other | {98: 1.0, 97: math.nan})
    values = [np.array(list(each.values())) for each in (one, other)]
    assert found.value.n == 7
    assert found.p == pytest.approx(stats.ttest_rel(*values).pvalue)
    assert found.effect_size == pytest.approx((values[0] - values[1]).mean() / (values[0] - values[1]).std(ddof=1))
    assert paired({0: 1.0, 1: 2.0}, {0: 0.0, 1: 1.0}).p is None


def test_without_censoring_survival_is_the_share_with_wilsons_interval() -> None:
    found = survival([Life(10, True), Life(20, True), *[Life(50, False)] * 6])
    assert (found.steps, found.at_risk, found.lost) == ([0, 10, 20, 50], [8, 8, 7, 6], [0, 1, 1, 0])
    np.testing.assert_allclose(found.share, [1, 7 / 8, 6 / 8, 6 / 8])
    expected = stats.binomtest(6, 8).proportion_ci(0.95, method="wilson")
    np.testing.assert_allclose([found.low[2], found.high[2]], expected, rtol=1e-12)
    np.testing.assert_allclose(wilson(1.0, 8), stats.binomtest(8, 8).proportion_ci(0.95, method="wilson"), rtol=1e-12)


def test_a_run_that_still_trains_counts_up_to_its_step() -> None:
    lives = [Life(10, True), Life(15, False), Life(20, True), Life(30, False)]
    found = survival(lives)
    steps, lost = zip(*[(life.step, life.lost) for life in lives], strict=True)
    data = stats.CensoredData.right_censored(steps, [not gone for gone in lost])
    expected = stats.ecdf(data).sf.evaluate(found.steps)
    np.testing.assert_allclose(found.share, expected)
    assert all(low < share <= high for low, share, high in zip(found.low, found.share, found.high, strict=True))
    assert survival([Life(5, True)] * 3).share[-1] == 0


def test_a_metric_is_compared_over_all_seeds_and_n_falls_where_a_seed_ends(fresh: Any) -> None:
    values = {seed: {1: seed + 0.5, 2: 2.0 * seed, **({3: 7.0} if seed < 2 else {})} for seed in range(4)}
    ids = [str(trained(fresh, "lru", seed, values[seed])) for seed in values]
    (group,) = get(fresh, "metrics", key="train_loss", bootstrap=True)["groups"]
    assert (group["seeds"], group["run_ids"], group["steps"], group["n"]) == ([0, 1, 2, 3], ids, [1, 2, 3], [4, 4, 2])
    assert (group["mean"], group["median"], group["iqm"]) == ([2, 3, 7], [2, 3, 7], [2, 3, 7])
    assert (group["minimum"], group["maximum"], group["recorded_steps"]) == ([0.5, 0, 7], [3.5, 6, 7], 3)
    assert group["low"][0] < group["bootstrap_low"][0] < 2 < group["bootstrap_high"][0] < group["high"][0]
    few = get(fresh, "metrics", key="train_loss", max_steps=2)["groups"][0]
    assert (few["steps"], few["recorded_steps"], few["bootstrap_low"]) == ([1, 3], 3, None)


def test_groups_split_by_any_field_whose_numbers_have_one_text(fresh: Any) -> None:
    for rate in (0.003, 0.1):
        for seed in range(2):
            trained(fresh, "lru", seed, {1: rate}, learning_rate=rate)
    for path, more in (("metrics", {"key": "train_loss"}), ("hidden-norms", {})):
        answer = get(fresh, path, group_by="training.learning_rate", **more)
        assert [g["fields"]["training.learning_rate"] for g in answer["groups"]] == ["0.003", "0.1"]
        assert answer["warnings"] == []
        assert len(get(fresh, path, **more)["groups"]) == 1
    unknown = fresh.http.get("/v1/compare/metrics?key=train_loss&group_by=training.nothing")
    assert (unknown.status_code, unknown.json()["value"]) == (422, "training.nothing")


def test_an_unrelated_group_changes_no_byte_of_another(fresh: Any) -> None:
    queries = {
        "metrics": {"key": "train_loss", "bootstrap": True, "max_steps": 2},
        "hidden-norms": {"bootstrap": True, "max_steps": 2, "runs": True},
        "survival": {},
        "differences": {"key": "train_loss"},
    }
    for seed in range(3):
        for cell in ("rotrnn", "lru"):
            trained(fresh, cell, seed, {1: seed + 0.1, 2: seed * 0.3 + len(cell), 3: -0.0})

    def seen(**more: Any) -> dict[str, list[str]]:
        answers = {path: get(fresh, path, **query, **more) for path, query in queries.items()}
        rows = {path: answer.get("groups", answer.get("rows")) for path, answer in answers.items()}
        mine = {p: [g for g in found if (g["depth"], g["cell"]) == (1, "lru-learned")] for p, found in rows.items()}
        return {path: list(map(json.dumps, found)) for path, found in mine.items()}

    before = seen()
    assert all(before.values())
    trained(fresh, {"name": "lru", "normaliser": "tied"}, 0, {1: math.nan, 4: 1e300})
    trained(fresh, {"name": "lru", "normaliser": "tied"}, 1, {1: 2.0}, status=Status.DIVERGED)
    trained(fresh, "lru", 5, {9: 1.0}, depth=2)
    assert seen() == before
    assert seen(cell=["lru-learned", "rotrnn"], depth=1) == before


def test_differences_are_paired_by_seed_and_corrected_over_depths(fresh: Any) -> None:
    rng = np.random.default_rng(0)
    last: dict[tuple[str, int], list[float]] = {}
    for depth in (1, 2):
        for cell in ("rotrnn", "lru"):
            last[cell, depth] = rng.normal(0.5, 0.1, 4).tolist()
            for seed, value in enumerate(last[cell, depth]):
                trained(fresh, cell, seed, {1: 0.0, 2: value}, key="test_accuracy", depth=depth)
    rows = get(fresh, "differences")["rows"]
    assert [(row["cell"], row["depth"], row["n"]) for row in rows] == [("lru-learned", 1, 4), ("lru-learned", 2, 4)]
    expected = [stats.ttest_rel(last["lru", depth], last["rotrnn", depth]).pvalue for depth in (1, 2)]
    np.testing.assert_allclose([row["p"] for row in rows], expected)
    np.testing.assert_allclose([row["p_holm"] for row in rows], holm(expected))


def test_survival_counts_the_diverged_the_stuck_and_those_that_still_train(fresh: Any) -> None:
    steps = {"steps": 100, "warmup_steps": 0}
    trained(fresh, "lru", 0, {100: 0.1}, key="validation_loss", **steps)
    trained(fresh, "lru", 1, {100: math.log(10)}, key="validation_loss", **steps)
    trained(fresh, "lru", 2, {5: 0.1}, status=Status.DIVERGED, **steps)
    trained(fresh, "lru", 3, {50: 0.1}, status=None, **steps)
    (group,) = get(fresh, "survival")["groups"]
    assert (group["diverged"], group["stuck"], group["training"]) == (1, 1, 1)
    assert (group["steps"], group["lost"], group["at_risk"]) == ([0, 7, 100], [0, 1, 1], [4, 4, 2])
    np.testing.assert_allclose(group["share"], [1, 3 / 4, 3 / 8])


def test_a_comparison_that_is_too_large_is_refused_and_not_cut(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    trained(fresh, "lru", 0, dict.fromkeys(range(20), 1.0))
    for name in ("MOST_NUMBERS", "MOST_RESAMPLED"):
        with monkeypatch.context() as patch:
            patch.setattr(f"api.routers.compare.{name}", 9)
            answer = fresh.http.get("/v1/compare/metrics?key=train_loss&bootstrap=true")
            assert (answer.status_code, "max_steps" in answer.json()["remedy"]) == (422, True)
