"""Where does the dashboard begin? The script that Streamlit runs: `streamlit run dashboard/app.py`."""

from pathlib import Path

import streamlit as st

from dashboard.pages import open_chosen

MARK = str(Path(__file__).parent / "assets" / "mark.svg")

st.set_page_config(page_title="RotBench", page_icon=MARK, layout="wide")
st.logo(MARK, size="large")
open_chosen()
