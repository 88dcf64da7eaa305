"""What stands around every page? Its head, what it says without data or without the API, and the guard at its edge."""

import functools
import logging
from collections.abc import Callable
from datetime import UTC, tzinfo
from typing import Any, ParamSpec
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from client import RotBenchError
from dashboard.connection import Answer, is_away, line
from dashboard.palette import Mode, cell_chip, cell_title, in_order
from dashboard.words import clock, plain

P = ParamSpec("P")
log = logging.getLogger(__name__)


def guarded(draw: Callable[P, None]) -> Callable[P, None]:
    """A drawing that never shows a traceback: what goes wrong is logged and said calmly."""

    @functools.wraps(draw)
    def safe(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            draw(*args, **kwargs)
        except RotBenchError as problem:
            refusal(problem)
        except Exception:
            log.exception("a page could not be drawn")
            st.error(
                "This part of the page could not be drawn. The dashboard's log says why; the rest goes on.",
                icon=":material/error:",
            )

    return safe


def mode() -> Mode:
    """Light or dark, as the reader has it."""
    return "dark" if st.context.theme.type == "dark" else "light"


def zone() -> tzinfo:
    """The reader's time zone."""
    try:
        return ZoneInfo(st.context.timezone or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        return UTC


def masthead(title: str, question: str) -> None:
    """A page's name and the question that it answers."""
    st.title(title, anchor=False)
    st.markdown(f":gray[{question}]")


def section(title: str, meaning: str) -> None:
    """A part's name with its explanation as help."""
    st.header(title, anchor=False, help=meaning)


def cell_column(cells: set[str], *, pinned: bool = False) -> Any:
    """A table's column of cells, as chips in their colours, as wide as the longest."""
    ordered = in_order(cells)
    width = max(116, *(34 + round(6.6 * len(cell_title(cell))) for cell in ordered)) if ordered else 116
    return st.column_config.MultiselectColumn(
        "Cell",
        width=width,
        pinned=pinned,
        options=ordered,
        color=[cell_chip(cell) for cell in ordered],
        format_func=cell_title,
    )


def code(text: str) -> None:
    """Text to copy; in one colour, since those of a highlighted language are too pale to be read by everybody."""
    st.code(text, language=None, wrap_lines=True)


def away_banner() -> None:
    """Say since when the API is away, above the last numbers."""
    since = line().away_since
    if since is not None:
        st.warning(
            f"**The API has not answered since {clock(since, zone())}.** "
            "You see its last answers; this page tries again by itself.",
            icon=":material/cloud_off:",
        )


def no_answer(answer: Answer[Any]) -> None:
    """In place of a page that never had an answer."""
    problem = answer.problem
    if problem is None or not is_away(problem):
        refusal(problem)
        return
    with st.container(border=True):
        st.header(":material/cloud_off: The API gives no answer", anchor=False)
        st.markdown(plain(problem.message))
        st.markdown("Start the local stack in the folder of your data:")
        code("rotbench up")
        since = line().away_since
        st.caption(
            (f"Away since {clock(since, zone())}. " if since else "")
            + "This page tries again every few seconds and fills itself as soon as there is an answer."
        )


def refusal(problem: RotBenchError | None) -> None:
    """Say what the API refused, in its own words."""
    text = plain(problem.message) if problem is not None else "The API gave no answer that this page understands."
    st.error(text, icon=":material/block:")


def empty(title: str, text: str, commands: str) -> None:
    """In place of a page without data: what fills it."""
    with st.container(border=True):
        st.header(title, anchor=False)
        st.markdown(text)
        code(commands)
        st.caption("This page fills itself as soon as the first numbers arrive.")
