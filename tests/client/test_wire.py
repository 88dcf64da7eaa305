"""Does what goes over the wire come back as it was, NaN and infinities included?"""

import json
import math
import struct
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.errors import RotBenchError
from client.results import HiddenNormGroup, LogLine, MetricSeries, Run, SingleRun
from client.stability import PairedRow
from client.wire import number, plain, read, to_json


def bits(value: float) -> bytes:
    return b"nan" if math.isnan(value) else struct.pack("<d", value)


@given(st.lists(st.floats()))
def test_every_float_comes_back_bit_for_bit(values: list[float]) -> None:
    steps = tuple(range(len(values)))
    series = MetricSeries("train_loss", steps, tuple(values), tuple(1 for _ in values))
    back = read(MetricSeries, json.loads(to_json(series)))
    assert list(map(bits, back.values)) == list(map(bits, values))


@given(st.floats())
def test_json_of_any_float_is_strict(value: float) -> None:
    def refuse(name: str) -> float:
        raise AssertionError(name)

    json.loads(to_json({"value": value}), parse_constant=refuse)


def test_non_finite_numbers_are_named_as_the_api_names_them() -> None:
    assert plain([math.nan, math.inf, -math.inf]) == ["NaN", "Infinity", "-Infinity"]
    assert math.isnan(number("NaN"))
    assert (number("Infinity"), number("-Infinity")) == (math.inf, -math.inf)


@pytest.mark.parametrize("value", ["nan", "inf", "1.0", "", True, [], {}])
def test_other_text_is_no_number(value: object) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        number(value)


def test_an_absent_bound_stays_absent_and_an_absent_mean_is_not_a_number() -> None:
    group = {
        "task": "t", "cell": "c", "depth": 1, "layer": 0, "statistic": "relative", "seeds": [0], "run_ids": ["r"],
        "steps": [0], "n": [1], "mean": [None], "low": [None], "high": [None], "minimum": ["NaN"], "maximum": [2],
        "non_finite": [0],
    }  # fmt: skip
    back = read(HiddenNormGroup, group)
    assert back.low == (None,)
    assert math.isnan(back.mean[0])
    assert back.maximum == (2.0,)
    assert isinstance(back.maximum[0], float)
    assert back.single == ()


def test_an_answer_of_a_newer_api_is_read_and_its_new_fields_are_left_out() -> None:
    line = {"attempt": 1, "sequence": 2, "at": "2030-01-02T03:04:05.5Z", "level": "info", "message": "m", "colour": 1}
    assert read(LogLine, line) == LogLine(1, 2, datetime(2030, 1, 2, 3, 4, 5, 500_000, UTC), "info", "m")


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"seed": 0, "run_id": "r", "status": "s", "steps": []}, "values missing"),
        ({"seed": 0, "run_id": "r", "status": "s", "steps": [1], "values": ["x"]}, "values: 'x' is not a number"),
        ({"seed": "0", "run_id": "r", "status": "s", "steps": [], "values": []}, "seed: '0' is not a int"),
        ([], "is not an object"),
        (None, "is not an object"),
    ],
)
def test_an_answer_of_another_form_is_told_with_the_place_where_it_differs(payload: object, said: str) -> None:
    with pytest.raises(RotBenchError) as told:
        read(SingleRun, payload)
    assert said in str(told.value)
    assert "same version" in str(told.value)


def test_a_difference_that_cannot_be_said_is_none() -> None:
    row = {"task": "t", "cell": "c", "depth": None, "measure": "m", "difference": None, "low": None, "high": None}
    assert read(PairedRow, {**row, "n": 0}).difference is None


def test_a_run_that_has_not_begun_has_no_progress_to_divide_by() -> None:
    run = Run(
        "i", None, None, "queued", None, None, {}, "h", "rotrnn", "t", 1, 0, 0, 0, 0, "normal",
        datetime.now(UTC), None, None, None, None, None, None, None,
    )  # fmt: skip
    assert run.progress == 0
    assert run.active
