"""What can a reader do to a sweep? Cancel what has not ended, and train more seeds; each with a second click."""

from typing import Any

import streamlit as st

from client import RotBenchError, Sweep
from dashboard import shell
from dashboard.connection import line
from dashboard.grids import SEED
from dashboard.words import plain, plural

_TOLD = "sweep-told"


def told() -> None:
    """Say what was done, on the page itself."""
    if done := st.session_state.pop(_TOLD, None):
        st.toast(done, icon=":material/check_circle:")


def buttons(sweep: Sweep) -> None:
    """What fits the sweep as it stands."""
    waiting = sweep.total - sweep.done
    if waiting:
        with st.popover(f"Cancel {waiting:,}", icon=":material/stop_circle:", key="sweep-cancel"):
            st.markdown(
                f"{plural(waiting, 'run')} of **{plain(sweep.name or 'this sweep')}** will end: those that wait at "
                "once, those that train at their next step. What they measured stays; runs that this sweep only took "
                "over go on."
            )
            if st.button(f"Cancel {plural(waiting, 'run')}", type="primary", key="sweep-cancel-yes"):
                _cancel(sweep)
    with st.popover("More seeds", icon=":material/add:", key="sweep-extend"):
        _extend(sweep)


def _cancel(sweep: Sweep) -> None:
    try:
        line().tell(lambda bench: bench.cancel_sweep(sweep.id))
    except RotBenchError as problem:
        shell.refusal(problem)
        return
    line().forget()
    st.session_state[_TOLD] = "Asked to end."
    st.rerun()


def _extend(sweep: Sweep) -> None:
    has = _seeds(sweep)
    st.markdown("Every combination of this sweep with further seeds, in this sweep.")
    number = int(st.number_input("Further seeds", 1, 50, 2, key="further", width=140) or 1)
    first = max(has, default=-1) + 1
    seeds = list(range(first, first + number))
    grid: dict[str, Any] = sweep.grid | {SEED: seeds}
    plan = line().ask(
        ("plan", sweep.id, tuple(seeds)), lambda bench: bench.plan_sweep(sweep.config, grid), fresh_s=30.0
    )
    if plan.value is None:
        shell.refusal(plan.problem)
        return
    named = f"seed {first}" if number == 1 else f"seeds {first} to {seeds[-1]}"
    st.caption(f"{plural(plan.value.total, 'run')} with {named}. It has seeds {', '.join(map(str, has)) or 'none'}.")
    if st.button(f"Train {plural(plan.value.total, 'more run')}", type="primary", key="further-yes"):
        try:
            line().tell(lambda bench: bench.extend_sweep(sweep.id, seeds))
        except RotBenchError as problem:
            shell.refusal(problem)
            return
        line().forget()
        st.session_state[_TOLD] = f"{plural(plan.value.total, 'run')} queued."
        st.rerun()


def _seeds(sweep: Sweep) -> list[int]:
    """The seeds that its runs have, the newest 200 of them looked at."""
    found = line().ask(
        ("seeds of", sweep.id), lambda bench: bench.run_page(sweep_id=sweep.id, limit=200).items, fresh_s=5.0
    )
    return sorted({run.seed for run in found.value or ()})
