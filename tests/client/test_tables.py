"""Does a CSV file hold what was measured, to the last bit?"""

import csv
import io
import json
import math
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from client.results import Divergence, HiddenNormSeries, HiddenNormTrace, MetricSeries, Run
from client.stability import (
    AccuracyRow,
    Claim,
    Finding,
    Measure,
    PairedRow,
    Stability,
    StabilityRow,
)
from client.tables import (
    hidden_norms_sheet,
    metrics_sheet,
    runs_sheet,
    write_hidden_norms,
    write_metrics,
    write_run,
    write_stability,
)

RUN = Run(
    "id", 'a "name", with commas\nand lines', None, "diverged", None, None, {"model": {"d_model": 8}}, "hash", "rotrnn",
    "t", 2, 7, 15, 20, 1, "normal", datetime(2030, 1, 2, tzinfo=UTC), None, None, None, 10, "cpu",
    Divergence(15, None, "gradient"), None, {"train_loss": math.inf},
)  # fmt: skip


def rows(stream: io.StringIO) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(stream.getvalue())))


@given(st.lists(st.floats()))
def test_a_metric_comes_back_bit_for_bit(values: list[float]) -> None:
    stream = io.StringIO()
    steps = tuple(range(len(values)))
    series = MetricSeries("train_loss", steps, tuple(values), tuple(1 for _ in values))
    write_metrics(metrics_sheet(stream), RUN, [series])
    back = [float(row["value"]) for row in rows(stream)]
    assert [repr(value) for value in back] == [repr(value) for value in values]


def test_a_run_keeps_its_name_its_configuration_and_where_it_diverged() -> None:
    stream = io.StringIO()
    write_run(runs_sheet(stream), RUN)
    (row,) = rows(stream)
    assert row["name"] == RUN.name
    assert json.loads(row["config"]) == RUN.config
    assert (row["divergence_step"], row["divergence_layer"], row["divergence_kind"]) == ("15", "", "gradient")
    assert (row["train_loss"], row["test_accuracy"], row["failure_class"]) == ("Infinity", "", "")
    assert datetime.fromisoformat(row["created_at"]) == RUN.created_at


def test_hidden_norms_have_a_row_per_step_and_layer() -> None:
    stream = io.StringIO()
    pairs = ((1.0, 0.1), (2.0, math.nan))
    series = HiddenNormSeries("relative", (0, 10), (1, 2), pairs, pairs, pairs, pairs, ((0, 0), (0, 4)))
    write_hidden_norms(hidden_norms_sheet(stream), RUN, HiddenNormTrace("id", 2, (), (series,)))
    found = [(row["step"], row["layer"], row["attempt"], row["mean"], row["non_finite"]) for row in rows(stream)]
    assert found == [
        ("0", "0", "1", "1.0", "0"),
        ("0", "1", "1", "0.1", "0"),
        ("10", "0", "2", "2.0", "0"),
        ("10", "1", "2", "NaN", "4"),
    ]


def test_stability_numbers_keep_the_units_of_the_api_and_absent_bounds_are_empty() -> None:
    stream = io.StringIO()
    stability = Stability(
        (Measure("spread_over_training", "Spread", "what it is", "ln"),),
        (StabilityRow("t", "rotrnn", 1, "spread_over_training", estimate=0.5, low=None, high=None, n=1),),
        (PairedRow("t", "lru-tied", None, "spread_over_training", 0.25, low=0.125, high=0.375, n=3),),
        Claim(Finding(None, ""), Finding(None, ""), ""),
        (AccuracyRow("t", "rotrnn", 1, estimate=0.75, low=0.5, high=1.0, n=3),),
    )
    write_stability(stream, stability)
    assert [list(row.values()) for row in rows(stream)] == [
        ["measure", "t", "rotrnn", "1", "spread_over_training", "0.5", "", "", "1", "ln", "", ""],
        [
            "difference_to_rotrnn",
            "t",
            "lru-tied",
            "all",
            "spread_over_training",
            "0.25",
            "0.125",
            "0.375",
            "3",
            "ln",
            "",
            "",
        ],
        ["accuracy", "t", "rotrnn", "1", "test_accuracy", "0.75", "0.5", "1.0", "3", "share", "", ""],
    ]
