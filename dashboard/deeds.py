"""What can a reader do to runs? Pause, resume, cancel, delete: each asked back once, then done, then told."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from client import RotBench, RotBenchError, Run
from dashboard.connection import line
from dashboard.palette import status_look
from dashboard.sheets import title
from dashboard.words import plain, plural

_ASKED = "deed-asked"
_DONE = "deed-done"


@dataclass(frozen=True)
class Deed:
    """Something that can be done to runs in some states."""

    name: str
    verb: str
    icon: str
    states: frozenset[str]
    meaning: str
    call: Callable[[RotBench, str], Any]


DEEDS = (
    Deed(
        "pause",
        "Pause",
        "pause_circle",
        frozenset({"queued", "running"}),
        "A running run stops with a checkpoint and waits until it is resumed.",
        lambda bench, run_id: bench.pause(run_id),
    ),
    Deed(
        "resume",
        "Resume",
        "play_circle",
        frozenset({"paused", "failed", "cancelled"}),
        "The run goes back to the queue and on from its last checkpoint.",
        lambda bench, run_id: bench.resume(run_id),
    ),
    Deed(
        "cancel",
        "Cancel",
        "stop_circle",
        frozenset({"queued", "running", "paused"}),
        "A waiting run ends at once, a running one at its next step. What it measured stays.",
        lambda bench, run_id: bench.cancel(run_id),
    ),
    Deed(
        "delete",
        "Delete",
        "delete",
        frozenset({"succeeded", "diverged", "failed", "cancelled"}),
        "The run and everything that it measured are gone for good.",
        lambda bench, run_id: bench.delete(run_id),
    ),
)


def buttons(runs: Sequence[Run], key: str) -> None:
    """A button per deed that fits at least one of the runs; a click asks back."""
    for deed in DEEDS:
        fitting = [run for run in runs if run.status in deed.states]
        label = deed.verb if len(runs) == 1 else f"{deed.verb} {len(fitting)}"
        if fitting and st.button(label, key=f"{key}-{deed.name}", icon=f":material/{deed.icon}:", help=deed.meaning):
            st.session_state[_ASKED] = (deed.name, tuple(fitting))
            st.rerun()


def conversation() -> None:
    """On the page itself, outside what redraws: say what was done, and ask back for what is wanted."""
    if done := st.session_state.pop(_DONE, None):
        st.toast(done[0], icon=f":material/{done[1]}:")
    if _ASKED in st.session_state:
        name, runs = st.session_state[_ASKED]
        deed = next(deed for deed in DEEDS if deed.name == name)
        st.dialog(f"{deed.verb} {plural(len(runs), 'run')}?", on_dismiss=_forget)(_ask_back)(deed, runs)


def _forget() -> None:
    st.session_state.pop(_ASKED, None)


def _ask_back(deed: Deed, runs: Sequence[Run]) -> None:
    st.markdown(deed.meaning)
    shown = [f"- {plain(title(run))} ({status_look(run.status).word.lower()})" for run in runs[:8]]
    if len(runs) > 8:
        shown.append(f"- and {len(runs) - 8} more")
    st.markdown("\n".join(shown))
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button("Leave as it is", key="deed-no"):
            _forget()
            st.rerun()
        if st.button(f"{deed.verb} {plural(len(runs), 'run')}", key="deed-yes", type="primary"):
            _do(deed, runs)
            st.rerun()


def _do(deed: Deed, runs: Sequence[Run]) -> None:
    refused: list[str] = []
    for run in runs:
        try:
            line().tell(lambda bench, run_id=run.id: deed.call(bench, run_id))  # type: ignore[misc]
        except RotBenchError as problem:
            refused.append(f"{title(run)}: {problem.message}")
    line().forget()
    _forget()
    done = len(runs) - len(refused)
    if refused:
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        st.session_state[_DONE] = (f"{done} of {len(runs)} done. {plain(refused[0])}{more}", "error")
    else:
        said = {"pause": "asked to pause", "resume": "queued again", "cancel": "asked to end", "delete": "deleted"}
        st.session_state[_DONE] = (f"{plural(done, 'run')} {said[deed.name]}.", "check_circle")
