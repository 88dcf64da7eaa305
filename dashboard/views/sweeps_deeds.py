"""What can a reader do to a sweep? Cancel what has not ended, and train more seeds; each with a second click."""

from typing import Any

import streamlit as st

from client import RotBenchError, Sweep
from dashboard import choices, shell
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
    st.markdown(
        "Every combination of this sweep with further seeds. It becomes a new sweep that takes over the runs that "
        f"exist (seeds {', '.join(map(str, has)) or 'none'}) and trains the others."
    )
    number = int(st.number_input("Further seeds", 1, 50, 2, key="further", width=140) or 1)
    first = max(has, default=-1) + 1
    grid: dict[str, Any] = sweep.grid | {SEED: [*has, *range(first, first + number)]}
    plan = line().ask(("plan", sweep.id, number), lambda bench: bench.plan_sweep(sweep.config, grid), fresh_s=30.0)
    if plan.value is None:
        shell.refusal(plan.problem)
        return
    new = plan.value.total - plan.value.duplicates
    st.caption(
        f"{plural(plan.value.total, 'run')} in all: {plan.value.duplicates:,} exist with the same configuration and "
        f"code, {new:,} will be trained."
    )
    if st.button(f"Train {plural(new, 'more run')}", type="primary", disabled=not new, key="further-yes"):
        try:
            made = line().tell(
                lambda bench: bench.sweep(sweep.config, grid, name=f"{sweep.name or 'sweep'} +{number}", dedupe="reuse")
            )
        except RotBenchError as problem:
            shell.refusal(problem)
            return
        line().forget()
        st.session_state[_TOLD] = f"{plural(new, 'run')} queued."
        st.switch_page(st.session_state["pages"]["sweeps"], query_params={"sweep": choices.sweep_label(made)})


def _seeds(sweep: Sweep) -> list[int]:
    listed = sweep.grid.get(SEED)
    if isinstance(listed, list):
        return [int(seed) for seed in listed]
    return [int(sweep.config.get("training", {}).get("seed", 0))]
