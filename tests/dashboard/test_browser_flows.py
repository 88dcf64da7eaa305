"""Do the pages beyond stability and runs work in a browser? An order goes from form to matrix, a figure to paper."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser


def test_an_order_goes_from_the_form_to_the_matrix_and_is_cancelled_there(
    scratch_service: Any, serve: Callable[[Any], str], open_page: "Callable[..., Page]"
) -> None:
    page = open_page(f"{serve(scratch_service)}/submit?name=by+hand&training.seed=810-811")
    page.get_by_role("button", name="Start 2 runs").click()
    page.get_by_role("heading", name="Sweeps", level=1).wait_for()
    page.wait_for_url(re.compile(r"/sweeps\?.*sweep=by(\+|%20)hand"))
    page.get_by_role("button", name="Cancel 2").click()
    page.get_by_role("button", name="Cancel 2 runs").click()
    page.locator(".stMarkdownBadge", has_text="2 cancelled").first.wait_for()
    (sweep,) = [one for one in scratch_service.bench.sweeps() if one.name == "by hand"]
    assert scratch_service.bench.get_sweep(sweep.id).counts == {"cancelled": 2}
    for run in scratch_service.bench.runs(sweep_id=sweep.id):
        scratch_service.bench.delete(run.id)


def test_a_figure_comes_along_on_paper_and_a_cell_of_the_matrix_opens_its_run(
    service: Any, serve: Callable[[Any], str], open_page: "Callable[..., Page]"
) -> None:
    (sweep,) = [one for one in service.bench.sweeps() if one.name == "seeds and depths"]
    page = open_page(f"{serve(service)}/sweeps?sweep=seeds+and+depths+{sweep.id[:8]}")
    page.locator(".js-plotly-plot .textpoint").first.wait_for()
    page.get_by_role("button", name="Download", exact=True).click()
    for kind, begins in (("PDF", b"%PDF"), ("CSV", b"row,column,run")):
        with page.expect_download() as saved:
            page.get_by_role("button", name=kind, exact=True).click()
        assert saved.value.path().read_bytes().startswith(begins)
    page.keyboard.press("Escape")
    place = page.locator(".js-plotly-plot .textpoint").first.bounding_box()
    assert place is not None
    page.mouse.click(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    page.wait_for_url(re.compile(r"/run\?id="))
    page.get_by_role("heading", name="seeds and depths", level=1).wait_for()
