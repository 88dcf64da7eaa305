"""Does the client read what the API says of many runs at once: charts, and statistics over seeds?"""

import math
from typing import Any


def test_the_answers_over_seeds_are_read_as_they_were_given(seeded: Any) -> None:
    every = {(cell, depth) for cell in ("rotrnn", "lru-learned") for depth in (1, 2)}
    with seeded.service.client() as client:
        compared = client.compare_metrics("train_loss", sweep_id=seeded.sweep_id)
        assert {(group.cell, group.depth) for group in compared.groups} == every
        assert all(group.n == (3, 3, 3) for group in compared.groups)
        survival = client.survival(sweep_id=seeded.sweep_id)
        assert [group.share[-1] for group in survival] == [1.0] * len(every)
        differences = client.differences("train_loss", sweep_id=seeded.sweep_id)
        assert [(row.cell, row.reference) for row in differences] == [("lru-learned", "rotrnn")] * 2


def test_a_chart_holds_a_line_per_run_and_key(seeded: Any) -> None:
    with seeded.service.client() as client:
        chart = client.chart([seeded.diverged], ["train_loss", "nothing"], buckets=100)
        series = client.metrics(seeded.diverged, "train_loss")["train_loss"]
    whole, empty = chart.lines
    assert whole.steps == series.steps
    assert list(map(repr, whole.values or ())) == list(map(repr, series.values))
    assert any(math.isinf(value) for value in whole.values or ())
    assert (empty.key, empty.steps) == ("nothing", ())
