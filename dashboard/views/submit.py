"""What shall be trained? A form from the API's own lists, checked while it is filled in, counted before it is sent."""

import uuid

import streamlit as st

from client import CellModel, Recipe, RotBenchError, Run, SweepPlan, Task
from dashboard import choices, commands, shell
from dashboard.connection import Answer, line
from dashboard.orders import Order
from dashboard.views.submit_form import form
from dashboard.views.submit_parts import plan_shown
from dashboard.words import plain, plural

_KEY = "submit-idempotency"
Lists = tuple[tuple[Recipe, ...], tuple[CellModel, ...], tuple[Task, ...]]


@shell.guarded
def page() -> None:
    """The form."""
    shell.masthead("Submit", "What shall be trained?")
    shell.away_banner()
    lists = line().ask("lists", lambda bench: (bench.recipes(), bench.models(), bench.tasks()), fresh_s=60.0)
    if lists.value is None:
        shell.no_answer(lists)
        if st.button("Try again", icon=":material/refresh:"):
            st.rerun()
        return
    st.fragment(_draw)(lists.value)


def _draw(lists: Lists) -> None:
    recipes, models, tasks = lists
    wanted = form(recipes, models, tasks)
    if wanted is None:
        return
    plan = _plan(wanted)
    with st.container(border=True, key="plan"):
        _decide(wanted, plan)
    _same(wanted)


def _plan(wanted: Order) -> Answer[SweepPlan]:
    """The API's own check and count, by a dry run."""
    grid = wanted.grid or _one(wanted)
    dedupe = "reuse" if wanted.reuse else None
    return line().ask(
        ("plan", repr(wanted.config), repr(grid), wanted.match, dedupe),
        lambda bench: bench.plan_sweep(wanted.config, grid, match=wanted.match, dedupe=dedupe),
        fresh_s=20.0,
    )


def _one(wanted: Order) -> dict[str, list[object]]:
    """A grid with the single run of the order: its seed is the axis."""
    training = wanted.config.get("training", {})
    return {"training.seed": [training.get("seed", 0) if isinstance(training, dict) else 0]}


def _decide(wanted: Order, plan: Answer[SweepPlan]) -> None:
    found = plan.value
    if found is None:
        problem = plan.problem
        where = f"**{plain(problem.field)}**: " if problem is not None and problem.field else ""
        said = plain(problem.message) if problem is not None else "The API gave no answer."
        st.error(f"{where}{said}", icon=":material/edit:")
        st.button("Start", disabled=True, key="start")
        return
    new = found.total - (found.duplicates if wanted.reuse else 0)
    plan_shown(found, wanted, new)
    label = f"Start {plural(new, 'run')}" if new else "Take over what exists"
    if st.button(label, type="primary", icon=":material/play_arrow:", key="start"):
        _start(wanted)


def _start(wanted: Order) -> None:
    """Send it; clicked twice in a hurry it is sent once, since both carry one key."""
    key = st.session_state.setdefault(_KEY, str(uuid.uuid4()))
    try:
        if wanted.grid:
            sweep = line().tell(
                lambda bench: bench.sweep(
                    wanted.config,
                    wanted.grid,
                    name=wanted.name,
                    priority=wanted.priority,
                    dedupe="reuse" if wanted.reuse else None,
                    match=wanted.match,
                    idempotency_key=f"{key}-{abs(hash(repr(commands.body(wanted))))}",
                )
            )
            target, query = "sweeps", {"sweep": choices.sweep_label(sweep)}
        else:
            run: Run = line().tell(
                lambda bench: bench.submit(
                    wanted.config,
                    name=wanted.name,
                    priority=wanted.priority,
                    dedupe="reuse" if wanted.reuse else None,
                    idempotency_key=f"{key}-{abs(hash(repr(commands.body(wanted))))}",
                )
            )
            target, query = "run", {"id": run.id}
    except RotBenchError as problem:
        shell.refusal(problem)
        return
    st.session_state.pop(_KEY, None)
    line().forget()
    st.switch_page(st.session_state["pages"][target], query_params=query)


def _same(wanted: Order) -> None:
    shell.section("The same elsewhere", "Each of the three does what the button does.")
    shell_tab, python_tab, rest_tab = st.tabs(["Command line", "Python", "curl"], key="as", bind="query-params")
    with shell_tab:
        shell.code(commands.command_line(wanted))
    with python_tab:
        shell.code(commands.python(wanted))
    with rest_tab:
        shell.code(commands.curl(wanted))
        st.caption("`rotbench token` says the address and the token of the local stack.")
