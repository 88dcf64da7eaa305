"""Is the form wired to the API? Counted and refused in its words while it is filled in, and sent once."""

from typing import Any


def said(page: Any) -> dict[str, str]:
    return {metric.label: metric.value for metric in page.metric}


def test_an_empty_form_is_one_run_with_the_defaults(service: Any, open_at: Any) -> None:
    page = open_at(service, "submit")
    assert said(page)["Runs"] == "1"
    assert page.button(key="start").label == "Start 1 run"
    assert page.code[0].value == "rotbench submit"
    assert page.text_input(key="training.steps").placeholder == "400"


def test_a_link_fills_the_form_and_several_values_are_counted_and_costed(service: Any, open_at: Any) -> None:
    address = {"cells": "rotrnn,lru", "training.seed": "0-2", "model.n_layers": "1,2", "training.steps": "100"}
    width = {"model.d_model": "16", "model.d_state": "16"}
    counted = {"training.seed": "0-2", "model.n_layers": "1,2", "training.steps": "100"}
    page = open_at(service, "submit", **width, **counted)
    page.multiselect(key="cells").set_value(["rotrnn", "lru"]).run()
    assert said(page)["Runs"] == "12"
    assert said(page)["Updates"] == "1,200"
    assert said(page)["Device time"].startswith("about ")
    assert page.button(key="start").label == "Start 12 runs"
    page.text_input(key="model.n_layers").set_value("1,2,3").run()
    assert said(page)["Device time"].startswith("over ")
    assert any("12 of 18 runs" in caption.value for caption in page.caption)
    page.text_input(key="model.n_layers").set_value("1,2").run()
    assert page.query_params["training.seed"] == address["training.seed"]
    assert "--grid 'training.seed=[0,1,2]'" in page.code[0].value


def test_a_wrong_value_is_refused_in_the_apis_words_and_the_button_is_shut(service: Any, open_at: Any) -> None:
    page = open_at(service, "submit")
    page.text_input(key="model.d_model").set_value("many").run()
    assert "model.d" in page.error[0].value.replace("\\", "")
    assert "many" in page.error[0].value
    assert page.button(key="start").disabled


def test_what_was_counted_is_started(scratch_service: Any, open_at: Any) -> None:
    page = open_at(scratch_service, "submit", **{"training.seed": "700-701", "name": "from the form"})
    page.button(key="start").click().run()
    (sweep,) = [one for one in scratch_service.bench.sweeps() if one.name == "from the form"]
    assert sweep.grid == {"training.seed": [700, 701]}
    scratch_service.bench.cancel_sweep(sweep.id)
    for run in scratch_service.bench.runs(sweep_id=sweep.id):
        scratch_service.bench.delete(run.id)
