"""Which pages are there? Their names, addresses and order."""

from pathlib import Path
from typing import Any

import streamlit as st

from dashboard import shell, viewport
from dashboard.views import compare, fleet, run, runs, stability, submit, sweeps

_PAGES = "pages"
_DARK = Path(__file__).parent / "assets" / "dark.css"


def open_chosen(home: str = "stability") -> None:
    """Put up the navigation and draw the page that the address names, `home` without one."""
    pages = {
        "stability": _page(stability.page, "Stability", "show_chart", home=home == "stability"),
        "compare": _page(compare.page, "Compare", "compare_arrows", home=home == "compare"),
        "sweeps": _page(sweeps.page, "Sweeps", "grid_on", home=home == "sweeps"),
        "runs": _page(runs.page, "Runs", "list", home=home == "runs"),
        "submit": _page(submit.page, "Submit", "add_circle", home=home == "submit"),
        "fleet": _page(fleet.page, "Fleet", "dns", home=home == "fleet"),
        "run": st.Page(run.page, title="Run", url_path="run", default=home == "run", visibility="hidden"),
    }
    st.session_state[_PAGES] = pages
    chosen = st.navigation(list(pages.values()), position="top")
    viewport.measure()
    if shell.mode() == "dark":
        st.html(_DARK)
    chosen.run()


def _page(draw: Any, title: str, icon: str, *, home: bool) -> Any:
    return st.Page(draw, title=title, icon=f":material/{icon}:", url_path=title.lower(), default=home)
