"""Can everybody read every page? By sight, light and dark, wide and narrow, and by the rules of WCAG 2.1 AA."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dashboard.palette import BACKGROUND

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

PAGES = {
    "?statistic=Per+head&depth=All": ".st-key-spread .js-plotly-plot",
    "compare": ".st-key-frontier .js-plotly-plot",
    "sweeps": ".js-plotly-plot .textpoint",
    "runs?status=Failed&status=Diverged": "[data-testid=stDataFrame] canvas",
    "run?id={lost}&part=Repeat": ".st-key-layers .js-plotly-plot",
    "run?id={training}": ".st-key-layers .js-plotly-plot",
    "submit?training.seed=0-2&cells=RotRNN": ".st-key-start button",
    "fleet": ".st-key-pace .js-plotly-plot",
}
"""By address, what is drawn last."""
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], "resultTypes": ["violations"]}
GROUND = "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
TEXTS = (Path(__file__).parent / "texts.js").read_text()


@pytest.mark.parametrize("path", PAGES)
def test_a_page_can_be_read_light_and_dark_wide_and_narrow(
    path: str, service: Any, serve: Callable[[Any], str], open_page: "Callable[..., Page]"
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    (lost,) = service.bench.runs(status="diverged")
    (training,) = service.bench.runs(status="running")
    page = open_page(f"{serve(service)}/{path.format(lost=lost.id, training=training.id)}")
    for width, scheme in ((1440, "light"), (768, "dark"), (390, "light")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        page.locator(PAGES[path]).first.wait_for()
        page.wait_for_timeout(700)
        page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
        assert page.evaluate(GROUND) == "rgb({}, {}, {})".format(*bytes.fromhex(BACKGROUND[scheme][1:]))
        assert page.locator("[data-testid=stException], [data-testid=stAlertContentError]").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width
        assert page.evaluate(TEXTS) == []
        found = Axe().run(page, options=RULES)
        assert not found.violations_count, found.generate_report()
