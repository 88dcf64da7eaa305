"""Does a record come back from its line as it was, to the last bit?"""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rotrnn_core.records import (
    Checkpoint,
    Confusion,
    Divergence,
    Evaluation,
    Finished,
    HiddenNorms,
    Loss,
    Record,
    Started,
    from_line,
    to_line,
)

INF = float("inf")
SPECIAL = [0.0, -0.0, INF, -INF, 5e-324, 1.7976931348623157e308, 0.1]
floats = st.floats(allow_nan=True) | st.sampled_from(SPECIAL)


def bits(value: object) -> object:
    """The value with every float as its bytes, so that NaN equals NaN and 0.0 is not -0.0."""
    if isinstance(value, float):
        return b"NaN" if value != value else struct.pack("<d", value)
    if isinstance(value, tuple):
        return tuple(map(bits, value))
    return value


def same(one: Record, other: Record) -> bool:
    """Equal in kind and in every bit of every field."""
    return type(one) is type(other) and all(bits(value) == bits(vars(other)[name]) for name, value in vars(one).items())


@given(st.lists(floats, min_size=6, max_size=6))
def test_a_loss_comes_back_bit_for_bit(values: list[float]) -> None:
    record = Loss(7, *values)
    assert same(from_line(to_line(record)), record)
    assert len(record.metrics()) == 6


@given(st.lists(floats, min_size=2, max_size=4), st.integers(1, 5))
def test_hidden_norms_come_back_bit_for_bit(values: list[float], positions: int) -> None:
    layer = tuple(values)
    profile = tuple((value,) * positions for value in values)
    record = HiddenNorms(3, "relative", layer, layer, layer, layer, (0,) * len(layer), profile)
    assert same(from_line(to_line(record)), record)


@pytest.mark.parametrize(
    "record",
    [
        Started(0, 10, 123, "cpu", (1, 2, 4), {"torch": "2"}),
        Evaluation(5, "test", float("nan"), 0.5),
        Confusion(5, ((3, 1), (0, 4))),
        Checkpoint(5, "/a b/step.pt", "00", 12),
        Divergence(5, None, "activation"),
        Divergence(5, 0, "gradient"),
        Finished(10),
    ],
)
def test_every_kind_comes_back_on_one_line(record: Record) -> None:
    line = to_line(record)
    assert "\n" not in line
    assert same(from_line(line), record)


@pytest.mark.parametrize(
    "line",
    ["", "{", "[1]", '{"record":"Rumour"}', '{"step":1}', '{"record":"Loss"}', '{"record":"Finished","steps":1}'],
)
def test_a_line_that_is_no_record_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        from_line(line)
