"""Which pages are there? The dashboard's entry: `streamlit run dashboard/app.py`."""

from pathlib import Path

import streamlit as st

from dashboard import viewport
from dashboard.views import run, runs, stability

ASSETS = Path(__file__).parent / "assets"

st.set_page_config(page_title="RotBench", page_icon=str(ASSETS / "mark.svg"), layout="wide")
st.logo(str(ASSETS / "mark.svg"), size="large")
pages = {
    "stability": st.Page(stability.page, title="Stability", icon=":material/show_chart:", default=True),
    "runs": st.Page(runs.page, title="Runs", icon=":material/list:", url_path="runs"),
    "run": st.Page(run.page, title="Run", url_path="run", visibility="hidden"),
}
st.session_state["pages"] = pages
page = st.navigation(list(pages.values()), position="top")
viewport.measure()
page.run()
