"""Are the pages wired to the API as they should be? Each runs without a browser against a real one."""

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from client import APIUnreachable, Run
from dashboard import connection, live
from dashboard.views import stability

Open = Callable[..., AppTest]


def texts(page: AppTest) -> str:
    """All that a page says in words."""
    kinds = (
        page.title,
        page.header,
        page.subheader,
        page.markdown,
        page.caption,
        page.info,
        page.warning,
        page.error,
        page.code,
    )
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def of(service: Any, **wanted: Any) -> Any:
    """The run with these fields."""
    return next(r for r in service.bench.runs() if all(getattr(r, name) == value for name, value in wanted.items()))


def test_the_home_page_shows_the_verdict_the_figures_and_the_tables(service: Any, open_at: Open) -> None:
    page = open_at(service)
    assert page.title[0].value == "Stability"
    assert [header.value for header in page.header][1:] == [
        "Hidden norm while training",
        "Where and when it moves",
        "Along the sequence",
        "Survival of the seeds",
        "Stability numbers",
        "Seed by seed against RotRNN",
        "Over depths",
    ]
    charts = [chart.proto.id.split("-")[-1] for chart in page.get("plotly_chart")]
    assert charts == ["norms", "heat", "profiles", "survival", "spread"]
    assert "stayed within" in texts(page)
    assert ".." not in texts(page)
    assert page.dataframe[0].value["Depth"].tolist() == [1, 1, 1, 2, 2, 2]
    assert not page.error


@pytest.mark.parametrize(
    ("home", "first"), [("stability", "Hidden norm while training"), ("compare", "Validation accuracy")]
)
def test_what_stands_below_the_first_figure_waits_until_the_browser_has_drawn_it(
    home: str, first: str, service: Any, open_at: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_at(service, home)
    assert page.header[-1].value != first
    monkeypatch.setattr(live, "painted", lambda key: False)
    assert page.run().header[-1].value == first
    assert not page.exception


def test_the_numbers_on_the_page_are_those_of_the_api(service: Any, open_at: Open) -> None:
    (sweep,) = service.bench.sweeps()
    rows = {
        (r.depth, r.cell): r for r in service.bench.stability(sweep_id=sweep.id).rows if r.measure == "settling_step"
    }
    table = open_at(service).dataframe[0].value
    for at in range(len(table)):
        wanted = rows[int(table["Depth"][at]), table["Cell"][at][0]]
        assert table["Settling step"][at].split()[0] == f"{wanted.estimate:.3g}"


def test_the_address_says_all_that_was_chosen_even_the_defaults(service: Any, open_at: Open) -> None:
    address = open_at(service).query_params
    assert address["sweep"].startswith("seeds and depths ")
    assert (address["statistic"], address["depth"]) == ("Relative", "2")


def test_a_link_opens_the_choices_that_it_names(service: Any, open_at: Open) -> None:
    page = open_at(service, statistic="Whole", depth="All", seeds="true")
    assert page.segmented_control(key="statistic").value == "Whole"
    assert page.segmented_control(key="depth").value == "All"
    assert page.toggle(key="seeds").value is True
    assert "as it is. It grows with the size" in texts(page)


def test_a_link_to_a_comparison_that_is_gone_opens_the_newest(service: Any, open_at: Open) -> None:
    page = open_at(service, sweep="long gone 12345678", depth="77")
    assert page.selectbox(key="sweep").value.startswith("seeds and depths ")
    assert page.segmented_control(key="depth").value == "2"


def test_a_depth_that_a_comparison_lacks_gives_way(service: Any, open_at: Open) -> None:
    page = open_at(service)
    page.segmented_control(key="depth").set_value("1").run()
    page.selectbox(key="sweep").set_value("All runs").run()
    assert not page.exception
    assert page.segmented_control(key="depth").value == "1"


def test_the_diverged_seed_is_named(service: Any, open_at: Open) -> None:
    said = texts(open_at(service))
    assert "LRU (learned) at depth 2, seed 1 (step 160)" in said
    assert "1 diverged" in said


@pytest.mark.parametrize("home", ["stability", "runs"])
def test_an_empty_store_names_the_command_that_fills_it(home: str, empty_service: Any, open_at: Open) -> None:
    page = open_at(empty_service, home)
    assert "No runs yet" in texts(page)
    assert "rotbench demo" in page.code[0].value


@pytest.mark.parametrize("home", ["stability", "runs", "run"])
def test_without_an_api_each_page_says_how_to_start_one(
    home: str, service: Any, open_at: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "connect", nobody)
    page = open_at(service, home, id="0")
    assert "The API gives no answer" in texts(page)
    assert page.code[0].value == "rotbench up"
    assert "Away since" in texts(page)


def nobody() -> Any:
    raise APIUnreachable("no answer from http://nowhere", url="http://nowhere", remedy="start it")


@pytest.mark.parametrize(("home", "shown"), [("stability", "Hidden norm while training"), ("runs", "21 runs")])
def test_an_api_that_goes_away_leaves_the_last_picture(
    home: str, shown: str, service: Any, open_at: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_at(service, home)
    line = connection.line()
    line.forget()
    monkeypatch.setattr(line, "_client", None)
    monkeypatch.setattr(connection, "connect", nobody)
    page.run()
    assert not page.exception
    assert "has not answered since" in page.warning[0].value
    assert shown in texts(page)
    monkeypatch.undo()
    for name, value in service.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(connection, "SILENCE_S", 0.0)
    line._silent_until = 0.0
    page.run()
    assert not any("has not answered" in warning.value for warning in page.warning)


def test_a_wrong_token_is_a_refusal_in_words(service: Any, open_at: Open) -> None:
    page = open_at(service, token="wrong")
    assert "token" in page.error[0].value
    assert not page.code


def test_a_defect_in_a_page_never_shows_a_traceback(
    service: Any, open_at: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError("a secret inside")

    monkeypatch.setattr(stability, "_draw", broken)
    page = open_at(service)
    assert "could not be drawn" in page.error[0].value
    assert "secret" not in texts(page)
    assert "a secret inside" in caplog.text


def test_the_list_shows_every_run_as_it_stands(service: Any, open_at: Open) -> None:
    table = open_at(service, "runs").dataframe[0].value
    assert len(table) == 21
    states = [status[0] for status in table["Status"]]
    assert {state: states.count(state) for state in set(states)} == {
        "succeeded": 17,
        "diverged": 1,
        "failed": 1,
        "running": 1,
        "queued": 1,
    }
    half = table[table["Run"] == "half-way"].iloc[0]
    assert (half["Progress"], half["Step"], half["Accuracy"]) == (50.0, "100 / 200", pytest.approx(27.0))


def test_filters_come_from_the_address_and_narrow_the_list(service: Any, open_at: Open) -> None:
    page = open_at(service, "runs", status="Diverged")
    assert page.dataframe[0].value["Status"].tolist() == [["diverged"]]
    page.multiselect(key="status").set_value([]).run()
    page.multiselect(key="layers").set_value(["1"]).run()
    assert page.dataframe[0].value["Depth"].tolist() == [1] * 9
    page.multiselect(key="status").set_value(["paused"]).run()
    assert "No run passes these filters" in page.info[0].value


def test_a_diverged_run_says_so_in_plain_words(service: Any, open_at: Open) -> None:
    page = open_at(service, "run", id=of(service, status="diverged").id)
    assert "It diverged: activation not finite at step 160, layer 1" in page.warning[0].value.replace("\\", "")
    assert [metric.value for metric in page.metric][:3] == ["160 / 200", "35.5 %", "not a number"]


def test_a_failed_run_says_why_and_its_text_is_never_markup(service: Any, open_at: Open) -> None:
    page = open_at(service, "run", id=of(service, status="failed").id)
    assert "ran out of memory" in page.error[0].value
    assert "\\<i\\>2 GiB\\</i\\>" in page.error[0].value
    assert page.title[0].value == "\\<img src\\=x\\> \\*too large\\*"


def test_a_run_shows_its_log_configuration_and_attempts(service: Any, open_at: Open) -> None:
    run = of(service, name="half-way").id
    assert "step 100: **bold** <b>10</b>" in open_at(service, "run", id=run).code[0].value
    tables = [table.value for table in open_at(service, "run", id=run, part="Configuration").dataframe]
    settings = {
        setting: value for table in tables for setting, value in zip(table["Setting"], table["Value"], strict=True)
    }
    assert settings["steps"] == "200"
    assert settings["d model"] == "16"
    (attempts,) = open_at(service, "run", id=run, part="Attempts").dataframe
    assert attempts.value["Took"].tolist() == ["still at it"]


def test_a_run_below_its_tasks_floor_says_so(
    service: Any, open_at: Open, run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    poor = run(below_floor=True)
    monkeypatch.setattr("dashboard.views.run._run", lambda run_id: connection.Answer(poor, None))
    assert "below the task's floor" in open_at(service, "run", id=poor.id).warning[0].value


def test_a_run_that_does_not_exist_is_said_to_be_missing(service: Any, open_at: Open) -> None:
    page = open_at(service, "run", id="00000000-0000-0000-0000-000000000000")
    assert page.error
    assert not page.metric


def test_a_run_is_cancelled_after_it_was_asked_back(service: Any, open_at: Open) -> None:
    run = service.bench.submit({"training": {"seed": 99}}, name="to be cancelled")
    page = open_at(service, "run", id=run.id)
    page.button(key="run-cancel").click().run()
    assert service.bench.run(run.id).status == "queued"
    page.button(key="deed-yes").click().run()
    assert service.bench.run(run.id).status == "cancelled"
    page.run()
    assert "Cancelled" in texts(page)
    service.bench.delete(run.id)


def test_leaving_it_as_it_is_changes_nothing(service: Any, open_at: Open) -> None:
    run = of(service, name="waiting")
    page = open_at(service, "run", id=run.id)
    page.button(key="run-cancel").click().run()
    page.button(key="deed-no").click().run()
    assert service.bench.run(run.id).status == "queued"
    assert not [button for button in page.button if button.key == "deed-yes"]
