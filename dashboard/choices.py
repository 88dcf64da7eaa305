"""What has the reader chosen? Choices that stand in the page's address, so that a link opens the same picture."""

from collections.abc import Sequence

import streamlit as st

from client import Run, SurvivalGroup, Sweep
from dashboard.palette import cell_title, in_order

ALL_RUNS = "All runs"
ALL_DEPTHS = "All"


def begin(key: str, default: str, options: Sequence[str]) -> None:
    """Give a choice its first value and write it into the address, before the widget that is bound to it.

    A value that is not offered gives way to the default. Streamlit leaves a widget's default out of the address, and a
    link would then follow the default of another day; so these widgets have none and begin here.
    """
    if key in st.session_state:
        if st.session_state[key] not in options:
            st.session_state[key] = default
    elif st.query_params.get(key) not in options:
        st.session_state[key] = default
        st.query_params[key] = default


def cells(label: str, runs: Sequence[Run | SurvivalGroup], *, placeholder: str, width: int) -> list[str]:
    """The cells that the reader picks among those of the runs or groups; none picked means no choice."""
    return st.multiselect(
        label,
        in_order({run.cell for run in runs}),
        key="cell",
        bind="query-params",
        format_func=cell_title,
        placeholder=placeholder,
        width=width,
    )


def depths(label: str, runs: Sequence[Run | SurvivalGroup], *, placeholder: str, width: int) -> list[int]:
    """The depths that the reader picks among those of the runs or groups; none picked means no choice."""
    picked = st.multiselect(
        label,
        [str(depth) for depth in sorted({run.depth for run in runs})],
        key="layers",
        bind="query-params",
        placeholder=placeholder,
        width=width,
        help="Number of layers of the network.",
    )
    return [int(one) for one in picked]


def sweep_label(sweep: Sweep) -> str:
    """A sweep's name as choices and addresses write it: readable, unique, and the same for ever."""
    return f"{sweep.name or 'sweep'} {sweep.id[:8]}"
