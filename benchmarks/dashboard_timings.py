"""How long does a reader of the dashboard wait? First paint and one interaction per page, in headless Chromium.

    python benchmarks/dashboard.py
    python benchmarks/dashboard.py --json --keep /tmp/filled --only stability runs

A Postgres of its own with 500 runs of 50,000 steps, the API and the dashboard as processes of their own, and Debian's
Chromium. A page is painted when its main figure or table is drawn, counted from the beginning of the visit; a visit
is a session of its own. `empty` is the first visit of a browser that has loaded nothing yet, `paint` the median of
visits by browsers that were started anew with what they had kept, `again` the median of further visits in one tab.
`interaction` is the median over the rounds, one way and back. Bytes are those of the largest message that the
dashboard sent for a page.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from benchmarks.dashboard_paints import Watched
from benchmarks.dashboard_runs import Extent, fill
from client import RotBench
from deploy.local.ports import any_free_port
from deploy.local.servers import EmbeddedPostgres
from store import tokens
from store.engine import make_engine, session_factory
from store.migrate import migrate

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[1]
TOKEN = "a token of the benchmark"
CHROMIUM = "/usr/bin/chromium"
FLAGS = "--no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update"
LIMIT_MS = 120_000
FIGURE = "document.querySelector('.st-key-{} .js-plotly-plot .main-svg .{}')"
SHADES = "document.querySelector('.st-key-cells-0 .js-plotly-plot').data[0].colorscale"
TABLE = "document.querySelector('[data-testid=stDataFrame] canvas')"


@dataclass(frozen=True)
class Visit:
    """A page: its address, when it is painted, and acts that lead to and fro, each with what shows that it is done."""

    path: str
    painted: str
    acts: tuple[tuple[Callable[["Page"], None], str], ...]


def choose(name: str) -> Callable[["Page"], None]:
    """Click one part of a segmented control."""
    return lambda page: page.get_by_role("radio", name=name, exact=True).click()


def fill_in(label: str, value: str) -> Callable[["Page"], None]:
    """Type into a field."""

    def act(page: "Page") -> None:
        field = page.get_by_label(label, exact=True).first
        field.fill(value)
        field.press("Enter")

    return act


def narrow(page: "Page") -> None:
    """Filter the list by a status."""
    page.locator(".st-key-status input").fill("Diverged")
    page.locator(".st-key-status input").press("Enter")


def widen(page: "Page") -> None:
    """Take that filter away."""
    page.locator(".st-key-status input").press("Backspace")


def says(selector: str, words: str) -> str:
    """Whether an element that fits holds the words."""
    return f"[...document.querySelectorAll({selector!r})].some(one => one.textContent.includes({words!r}))"


VISITS = {
    "stability": Visit(
        "",
        FIGURE.format("norms", "lines"),
        (
            (choose("Per head"), says(".st-key-norms .infolayer", "norm of one head")),
            (choose("Relative"), says(".st-key-norms .infolayer", "before training")),
        ),
    ),
    "compare": Visit(
        "compare",
        FIGURE.format("curves", "lines"),
        (
            (choose("Wall time"), says(".st-key-curves .infolayer", "wall time")),
            (choose("Step"), says(".st-key-curves .infolayer", "training step")),
        ),
    ),
    "sweeps": Visit(
        "sweeps",
        FIGURE.format("cells-0", "heatmaplayer"),
        (
            (choose("Accuracy"), f"{SHADES}.length <= 2"),
            (choose("State"), f"{SHADES}.length > 2"),
        ),
    ),
    "runs": Visit(
        "runs",
        TABLE,
        (
            (narrow, says("[data-testid=stMarkdown]", "1 run: what trains")),
            (widen, says("[data-testid=stMarkdown]", "100 runs and more")),
        ),
    ),
    "run": Visit("run?id={run}", FIGURE.format("layers", "lines"), ()),
    "submit": Visit(
        "submit",
        says("[data-testid=stButton]", "Start 1 run"),
        (
            (fill_in("depth", "1, 2"), says("[data-testid=stButton]", "Start 2 runs")),
            (fill_in("depth", "2"), says("[data-testid=stButton]", "Start 1 run")),
        ),
    ),
    "fleet": Visit(
        "fleet",
        FIGURE.format("pace", "bars"),
        (
            (choose("7 d"), says("[data-testid=stCaptionContainer]", "in the last 7 d")),
            (choose("24 h"), says("[data-testid=stCaptionContainer]", "in the last 24 h")),
        ),
    ),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--quick", action="store_true", help="40 runs")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="the filled database, made where absent")
    parser.add_argument("--only", nargs="+", choices=sorted(VISITS), help="these pages alone")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    extent = Extent((1, 4), 5) if arguments.quick else Extent()
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "streamlit": version("streamlit"),
        "plotly": version("plotly"),
        "load_average": psutil.getloadavg()[0],
        "cores": psutil.cpu_count(),
    }
    with tempfile.TemporaryDirectory() as folder, _servers(arguments.keep or Path(folder), extent) as addresses:
        found |= _measured(*addresses, arguments.only or list(VISITS), arguments.rounds)
    if arguments.json:
        sys.stdout.write(json.dumps(found) + "\n")
        return
    for name, value in found.items():
        sys.stdout.write(f"{name:34} {value:,.0f}\n" if isinstance(value, float) else f"{name:34} {value}\n")


def _measured(api: str, dashboard: str, pages: list[str], rounds: int) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    with RotBench(api, TOKEN) as bench, sync_playwright() as playwright:
        run = next(run for run in bench.runs(status="succeeded") if run.depth == 6)
        found: dict[str, Any] = {"runs": sum(sweep.total for sweep in bench.sweeps())}
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        found["chromium"] = browser.version
        for name in pages:
            said = _visited(browser, dashboard, name, VISITS[name], run.id, rounds)
            sys.stderr.write(f"{json.dumps(said)}\n")
            found |= said
        browser.close()
    return found


def _visited(browser: "Browser", url: str, name: str, visit: Visit, run: str, rounds: int) -> dict[str, float]:
    address = f"{url}/{visit.path.format(run=run)}"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        watched = Watched([CHROMIUM, *FLAGS.split()], Path(folder), visit.painted)
        found = {
            "empty_ms": watched.visit(address)[0],
            "paint_ms": statistics.median(watched.visit(address)[0] for _ in range(rounds)),
            "again_ms": statistics.median(watched.visit(address, 1 + rounds)[1:]),
        }
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(LIMIT_MS)
    sizes: list[int] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: sizes.append(len(frame))))
    page.goto(address)
    page.wait_for_function(visit.painted, polling="raf")
    _settle(page)
    first, again = _acted(page, visit, rounds)
    page.close()
    found["largest_message_bytes"] = float(max(sizes))
    if again:
        found |= {"first_interaction_ms": max(first), "interaction_ms": statistics.median(again)}
    return {f"{name}_{key}": value for key, value in found.items()}


def _acted(page: "Page", visit: Visit, rounds: int) -> tuple[list[float], list[float]]:
    """The times of each act's first time, and of the further ones."""
    times = []
    for _ in range(1 + rounds):
        for act, done in visit.acts:
            time.sleep(1.0)
            began = time.perf_counter()
            act(page)
            page.wait_for_function(done, polling="raf")
            times.append(1e3 * (time.perf_counter() - began))
            _settle(page)
    return times[: len(visit.acts)], times[len(visit.acts) :]


def _settle(page: "Page") -> None:
    """Wait until the dashboard has nothing more to say."""
    page.wait_for_function("!document.querySelector('[data-testid=stStatusWidget]')")
    page.wait_for_function("!document.querySelector('[data-testid=stApp][data-test-script-state=running]')")


@contextmanager
def _servers(folder: Path, extent: Extent) -> Iterator[tuple[str, str]]:
    filled = folder / "filled"
    with EmbeddedPostgres(folder / "postgres") as server:
        migrate(server.url)
        engine = make_engine(server.url, application_name="benchmark", statement_timeout_s=600.0)
        sessions = session_factory(engine)
        with sessions.begin() as session:
            tokens.ensure(session, "benchmark", TOKEN)
        api, dashboard = (f"http://127.0.0.1:{any_free_port()}" for _ in range(2))
        surroundings = {"ROTBENCH_DATABASE_URL": server.url, "ROTBENCH_URL": api, "ROTBENCH_TOKEN": TOKEN}
        with _process(["uvicorn", "api.main:app", "--port", _port(api)], surroundings, f"{api}/readyz"):
            if not filled.exists():
                with RotBench(api, TOKEN, timeout_s=300.0) as bench:
                    fill(bench, sessions, extent)
                filled.touch()
        engine.dispose()
        with (
            _process(["uvicorn", "api.main:app", "--port", _port(api)], surroundings, f"{api}/readyz"),
            _process(
                ["streamlit", "run", "dashboard/app.py", "--server.port", _port(dashboard)],
                surroundings,
                f"{dashboard}/_stcore/health",
            ),
        ):
            yield api, dashboard


@contextmanager
def _process(words: list[str], surroundings: dict[str, str], answers: str) -> Iterator[None]:
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *words], cwd=ROOT, env=os.environ | surroundings, stdout=log, stderr=log
        )
        try:
            _wait_for(answers)
            yield
        finally:
            process.terminate()
            process.wait(30)


def _wait_for(url: str, within_s: float = 60.0) -> None:
    until = time.monotonic() + within_s
    while True:
        try:
            urllib.request.urlopen(url, timeout=2).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def _port(url: str) -> str:
    return url.rpartition(":")[2]


if __name__ == "__main__":
    main()
