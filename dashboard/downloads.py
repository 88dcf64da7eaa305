"""How does a figure leave the page? As PDF, SVG or PNG at paper size, and its data as CSV."""

import csv
import io
from collections.abc import Callable
from functools import partial
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from dashboard import shell
from dashboard.figures.canvas import MODEBAR
from dashboard.palette import Mode
from dashboard.paper import KINDS, printed
from dashboard.sheets import Sheet


def chart(
    build: Callable[[Mode], go.Figure], key: str, *, alt: str, sheet: Callable[[], Sheet], select: bool = False
) -> Any:
    """Draw a figure and offer it and its data.

    Args:
        build: Makes the figure in light or dark; paper is light.
        key: Names the figure on its page.
        alt: What it shows, for those who do not see it.
        sheet: Its data, a column each; asked for on a click alone.
        select: Whether its points can be clicked.

    Returns:
        The customdata of the point that was clicked just now; None without one.
    """
    figure = build(shell.mode())
    clicked = None
    if select:
        # The key changes with the page's visits, so that a click does not act once more when the reader comes back.
        turn = st.session_state.setdefault(f"{key}-turn", 0)
        picked = st.plotly_chart(
            figure, key=f"{key}-{turn}", config=MODEBAR, alt=alt, on_select="rerun", selection_mode="points"
        )
        points = picked["selection"]["points"]
        if points:
            st.session_state[f"{key}-turn"] = turn + 1
            clicked = points[0].get("customdata")
    else:
        st.plotly_chart(figure, key=key, config=MODEBAR, alt=alt)
    with st.popover(
        "Download", icon=":material/download:", type="tertiary", key=f"{key}-download", help=f"The figure: {alt}"
    ):
        st.caption("The figure at paper size, 180 mm wide, or its data.")
        with st.container(horizontal=True, gap="small"):
            for kind, mime in KINDS.items():
                st.download_button(
                    kind.upper(),
                    partial(_figure, build, kind),
                    f"{key}.{kind}",
                    mime,
                    key=f"{key}-{kind}",
                    on_click="ignore",
                )
            st.download_button(
                "CSV", partial(written, sheet), f"{key}.csv", "text/csv", key=f"{key}-csv", on_click="ignore"
            )
    return clicked


def written(sheet: Callable[[], Sheet]) -> str:
    """A sheet as CSV: floats come back bit for bit, what is missing is an empty field."""
    columns = sheet()
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(columns)
    out.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def _figure(build: Callable[[Mode], go.Figure], kind: str) -> bytes:
    return printed(build("light"), kind)
