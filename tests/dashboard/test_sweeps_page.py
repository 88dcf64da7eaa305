"""Is the page of sweeps wired to the API? The matrix, its choices, and what can be done to a sweep."""

from typing import Any


def test_a_sweep_is_shown_with_its_cost_and_its_choices_stand_in_the_address(service: Any, open_at: Any) -> None:
    page = open_at(service, "sweeps")
    assert page.title[0].value == "Sweeps"
    facts = {metric.label: metric.value for metric in page.metric}
    assert (facts["Ended"], facts["Tested"], facts["Device time left"]) == ("18 / 18", "17", "none")
    assert page.query_params["across"] == "seed"
    assert page.query_params["shade"] == "State"
    assert [chart.proto.id.split("-")[-2] for chart in page.get("plotly_chart")] == ["cells"]
    assert not page.error


def test_a_link_opens_the_columns_that_it_names(service: Any, open_at: Any) -> None:
    page = open_at(service, "sweeps", across="depth", shade="Accuracy")
    assert page.segmented_control(key="across").value == "depth"
    assert page.segmented_control(key="shade").value == "Accuracy"


def test_without_sweeps_the_page_says_what_makes_one(empty_service: Any, open_at: Any) -> None:
    page = open_at(empty_service, "sweeps")
    assert "No sweeps yet" in page.header[0].value
    assert "rotbench sweep" in page.code[0].value


def test_more_seeds_join_the_sweep_and_what_waits_is_cancelled(scratch_service: Any, open_at: Any) -> None:
    made = scratch_service.bench.sweep(
        {"training": {"steps": 7, "warmup_steps": 0}}, {"training.seed": [500, 501]}, name="to be extended"
    )
    label = f"to be extended {made.id[:8]}"
    page = open_at(scratch_service, "sweeps", sweep=label)
    page.number_input(key="further").set_value(1).run()
    assert "1 run with seed 502. It has seeds 500, 501." in [one.value for one in page.caption]
    page.button(key="further-yes").click().run()
    assert {run.seed for run in scratch_service.bench.runs(sweep_id=made.id)} == {500, 501, 502}
    page.button(key="sweep-cancel-yes").click().run()
    assert scratch_service.bench.get_sweep(made.id).counts == {"cancelled": 3}
    for run in scratch_service.bench.runs(sweep_id=made.id):
        scratch_service.bench.delete(run.id)
