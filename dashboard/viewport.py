"""How wide is the page in the browser? Figures break their panels into fewer columns where it is narrow."""

from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

STEPS = (560, 960)
_KEY = "viewport"
_SCRIPT = """
export default function ({ setStateValue }) {
  const steps = %s;
  let last = steps.length;
  const tell = () => {
    const width = document.documentElement.clientWidth;
    const size = steps.filter((step) => width >= step).length;
    if (size !== last) { last = size; setStateValue("size", size); }
  };
  tell();
  window.addEventListener("resize", tell);
  return () => window.removeEventListener("resize", tell);
}
"""


@st.cache_resource
def _ruler() -> Callable[..., Any]:
    return component("rotbench_viewport", js=_SCRIPT % list(STEPS))


def measure() -> None:
    """Put the ruler on the page; once, in the entry. It says nothing of a width that is taken for granted."""
    _ruler()(key=_KEY, default={"size": len(STEPS)}, on_size_change=lambda: None, height=1)


def columns(*, most: int = 4) -> int:
    """How many panels stand side by side: 1 on a phone, 2 on a tablet, `most` on a desk and before it is known."""
    state = st.session_state.get(_KEY) or {}
    return (1, min(2, most), most)[state.get("size", len(STEPS))]
