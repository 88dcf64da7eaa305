"""When is a part of a page drawn? Again while something may change; after the first figure what stands below it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

from dashboard.shell import guarded

EVERY_S = 3.0
_WATCH = """
export default function ({ data, setStateValue }) {
  if (data) return;
  let timer;
  const look = () => {
    if (document.querySelector(".js-plotly-plot .main-svg")) setStateValue("painted", true);
    else timer = setTimeout(look, 50);
  };
  timer = setTimeout(look);
  return () => clearTimeout(timer);
}
"""


@dataclass(frozen=True)
class Outline:
    """What a page's frame depends on: whether runs move, whether it waits for the API or for data, and its choices."""

    moving: bool = False
    waiting: bool = False
    choices: tuple[object, ...] = ()


def region(draw: Callable[[], None], outline: Callable[[], Outline]) -> None:
    """Draw a part of the page that keeps itself up to date.

    While runs move or the page waits it is drawn every few seconds; when its outline changes, the whole page is drawn
    anew, which also ends or begins the repetition.
    """
    first = outline()

    @guarded
    def again() -> None:
        if outline() != first:
            st.rerun()
        draw()

    st.fragment(again, run_every=EVERY_S if first.moving or first.waiting else None)()


def below(draw: Callable[[], None], key: str) -> None:
    """Draw a part once the browser has drawn the figure above it, so that the reader sees that one first."""

    @guarded
    def part() -> None:
        if painted(key):
            draw()

    st.fragment(part)()


def painted(key: str) -> bool:
    """Whether the browser has drawn a figure since the page was opened; when it has, it draws this part again."""
    known = (st.session_state.get(key) or {}).get("painted", False)
    found = _watch()(key=key, data=known, default={"painted": False}, on_painted_change=lambda: None, height=1)
    return bool(found.painted)


@st.cache_resource
def _watch() -> Callable[..., Any]:
    return component("rotbench_painted", js=_WATCH)
