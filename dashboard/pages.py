"""Which pages are there? Their names, addresses and order."""

from typing import Any

import streamlit as st

from dashboard import viewport
from dashboard.views import run, runs, stability

_PAGES = "pages"


def open_chosen(home: str = "stability") -> None:
    """Put up the navigation and draw the page that the address names, `home` without one."""
    pages = {
        "stability": _page(stability.page, "Stability", "show_chart", home=home == "stability"),
        "runs": _page(runs.page, "Runs", "list", home=home == "runs"),
        "run": st.Page(run.page, title="Run", url_path="run", default=home == "run", visibility="hidden"),
    }
    st.session_state[_PAGES] = pages
    chosen = st.navigation(list(pages.values()), position="top")
    viewport.measure()
    chosen.run()


def _page(draw: Any, title: str, icon: str, *, home: bool) -> Any:
    return st.Page(draw, title=title, icon=f":material/{icon}:", url_path=title.lower(), default=home)
