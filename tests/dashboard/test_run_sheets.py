"""Do the tables of one run say what happened, what is kept and where it trained?"""

import json
import shlex
from datetime import UTC, datetime
from typing import Any

import pytest

from client import Attempt, Checkpoint, Event
from dashboard.commands import repeated
from dashboard.orders import Order
from dashboard.run_sheets import checkpoints_sheet, environment_sheet, events_sheet, size

NOON = datetime(2026, 7, 1, 12, 0, 5, tzinfo=UTC)


def attempt(number: int, environment: dict[str, Any] | None) -> Attempt:
    return Attempt(number, "w", "h", "cpu", NOON, None, None, None, None, 0, environment)


def test_facts_of_all_attempts_stand_side_by_side() -> None:
    sheet = environment_sheet([attempt(1, {"torch": "2.13", "scan_backend": "numba"}), attempt(2, {"torch": "2.14"})])
    assert sheet == {"Fact": ["torch", "scan backend"], "Attempt 1": ["2.13", "numba"], "Attempt 2": ["2.14", ""]}
    assert environment_sheet([attempt(1, None)]) == {}


def test_an_event_says_when_and_what_in_words() -> None:
    sheet = events_sheet([Event(1, NOON, "lease_lost", 2, "the worker was silent")], UTC)
    assert sheet == {
        "When": ["1 Jul 12:00:05"],
        "Attempt": [2],
        "What": ["lease lost"],
        "In words": ["the worker was silent"],
    }


def test_a_checkpoint_has_its_size_and_its_sum() -> None:
    sheet = checkpoints_sheet([Checkpoint(1, 100, "runs/x/1", "ab" * 32, 1_572_864, NOON)], UTC)
    assert (sheet["Step"], sheet["Size"], sheet["SHA-256"]) == ([100], ["1.5 MiB"], ["ab" * 32])


@pytest.mark.parametrize(("count", "text"), [(7, "7 B"), (2048, "2.0 KiB"), (5 * 2**30, "5.0 GiB")])
def test_bytes_are_said_in_a_unit(count: int, text: str) -> None:
    assert size(count) == text


def test_the_repetition_carries_the_whole_configuration() -> None:
    text = repeated(Order(None, {"training": {"seed": 3}}, name="it's", priority="high"))
    first, _, rest = text.partition("\n")
    assert shlex.split(first.removesuffix(" <<'JSON'")) == [
        *("rotbench", "submit", "--name", "it's", "--priority", "high", "--config", "-")
    ]
    assert json.loads(rest.removesuffix("\nJSON")) == {"training": {"seed": 3}}


def test_a_run_shows_events_environment_and_how_to_repeat_it(service: Any, open_at: Any) -> None:
    run = next(one for one in service.bench.runs() if one.name == "half-way")
    (found,) = open_at(service, "run", id=run.id, find="step 100").code
    assert found.value.count("\n") == 0
    assert "step 100" in found.value
    (events,) = open_at(service, "run", id=run.id, part="Events").dataframe
    assert len(events.value["In words"])
    (facts,) = open_at(service, "run", id=run.id, part="Environment").dataframe
    assert dict(zip(facts.value["Fact"], facts.value["Attempt 1"], strict=True))["torch"] == "2"
    command, request = (code.value for code in open_at(service, "run", id=run.id, part="Repeat").code)
    assert command.startswith("rotbench submit --name half-way --config -")
    assert "/v1/runs" in request


def test_a_run_is_changed_on_the_form_with_all_that_it_had(service: Any, open_at: Any) -> None:
    run = next(one for one in service.bench.runs() if one.cell == "lru-tied" and one.depth == 2)
    page = open_at(service, "run", id=run.id, part="Repeat")
    page.button(key="change").click().run()
    assert page.title[0].value == "Submit"
    assert page.text_input(key="model.d_model").value == "16"
    assert page.multiselect(key="cells").value == ["lru"]
    assert page.multiselect(key="lru.normaliser").value == ["tied"]
    assert page.text_input(key="model.n_layers").value == "2"
    assert page.button(key="start").label == "Start 1 run"
