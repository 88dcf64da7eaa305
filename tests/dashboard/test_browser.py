"""Does the dashboard work in a browser? Opened, shared, watched live, and while the API is gone."""

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.browser

Serve = Callable[[Any], str]
OpenPage = Callable[..., "Page"]


@pytest.fixture(scope="module")
def shaky(make_service: Callable[[], Any]) -> Any:
    """An API that may be stopped, with a finished run and one that trains."""
    made = make_service()
    for name, share, status in (("done", 1.0, "succeeded"), ("training", 0.5, None)):
        run = made.bench.submit({"training": {"steps": 200, "warmup_steps": 20}}, name=name)
        made.train(run.id, share=share, status=status)
    return made


def badge(page: "Page", word: str) -> "Locator":
    return page.locator(".stMarkdownBadge", has_text=word).first


def panel_titles(page: "Page") -> list[str]:
    figure = page.locator(".st-key-norms .js-plotly-plot")
    figure.wait_for()
    return figure.locator(".annotation-text").all_inner_texts() or figure.locator(".annotation").all_text_contents()


def test_a_link_opens_the_same_picture_elsewhere(service: Any, serve: Serve, open_page: OpenPage) -> None:
    page = open_page(serve(service))
    page.get_by_role("radio", name="Per head").or_(page.get_by_text("Per head", exact=True)).first.click()
    page.get_by_text("All", exact=True).first.click()
    page.wait_for_url(re.compile("depth=All"))
    page.wait_for_url(re.compile(r"statistic=Per(\+|%20)head"))
    page.locator(".annotation", has_text="depth 1").first.wait_for()
    other = open_page(page.url)
    other.locator(".annotation", has_text="depth 1").first.wait_for()
    assert panel_titles(other) == panel_titles(page)
    assert other.get_by_text("averaged over heads").first.is_visible()


def test_a_window_that_becomes_narrow_stacks_its_panels(service: Any, serve: Serve, open_page: OpenPage) -> None:
    page = open_page(serve(service))
    figure = page.locator(".st-key-norms .js-plotly-plot")
    figure.wait_for()
    wide = figure.evaluate("node => node.clientHeight")
    page.set_viewport_size({"width": 390, "height": 900})
    page.wait_for_function(
        "wide => document.querySelector('.st-key-norms .js-plotly-plot').clientHeight > 1.5 * wide", arg=wide
    )


def test_a_run_that_starts_is_seen_without_reloading(service: Any, serve: Serve, open_page: OpenPage) -> None:
    run = service.bench.submit({"training": {"steps": 200, "warmup_steps": 20, "seed": 5}}, name="watched")
    page = open_page(f"{serve(service)}/run?id={run.id}")
    badge(page, "Queued").wait_for()
    service.train(run.id, share=0.5)
    badge(page, "Succeeded").wait_for()
    page.get_by_role("heading", name="Curves").wait_for()
    service.bench.delete(run.id)


def test_a_page_is_silent_when_nothing_moves(shaky: Any, serve: Serve, open_page: OpenPage) -> None:
    run = next(run for run in shaky.bench.runs() if run.status == "succeeded")
    page = open_page(f"{serve(shaky)}/run?id={run.id}")
    page.get_by_role("heading", name="Hidden norm").wait_for()
    page.wait_for_timeout(1500)
    page.evaluate(
        "() => { const send = WebSocket.prototype.send; window.sent = 0;"
        " WebSocket.prototype.send = function (...a) { window.sent++; return send.apply(this, a); }; }"
    )
    page.wait_for_timeout(4500)
    assert page.evaluate("window.sent") == 0


def test_an_api_that_restarts_is_missed_and_found_again(shaky: Any, serve: Serve, open_page: OpenPage) -> None:
    run = next(run for run in shaky.bench.runs() if run.status == "running")
    page = open_page(f"{serve(shaky)}/run?id={run.id}")
    page.get_by_role("heading", name="Curves").wait_for()
    shaky.stop()
    page.get_by_text("The API has not answered since").wait_for()
    assert page.get_by_role("heading", name="Curves").is_visible()
    assert page.locator(".js-plotly-plot").count() >= 4
    shaky.start()
    page.get_by_text("The API has not answered since").wait_for(state="detached")
    assert page.locator("[data-testid=stException]").count() == 0


def test_a_run_opens_from_the_list_and_is_cancelled_there(service: Any, serve: Serve, open_page: OpenPage) -> None:
    run = service.bench.submit({"training": {"seed": 31}}, name="cancel me")
    page = open_page(f"{serve(service)}/runs?status=Queued")
    grid = page.locator("[data-testid=stDataFrame]").first
    grid.wait_for()
    page.wait_for_timeout(1000)
    box = grid.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 56, box["y"] + 52)
    page.get_by_role("heading", name="cancel me", level=1).wait_for()
    page.wait_for_url(re.compile(f"/run\\?id={run.id}"))
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_role("button", name="Cancel 1 run").click()
    badge(page, "Cancelled").wait_for()
    deadline = time.monotonic() + 10
    while service.bench.run(run.id).status != "cancelled":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    service.bench.delete(run.id)
