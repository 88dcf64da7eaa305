"""When does a page draw itself again? Every few seconds while something may change, and never without a reason."""

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from dashboard.shell import guarded

EVERY_S = 3.0


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
