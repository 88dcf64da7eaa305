"""Which combinations were trained, how far are they, and what do they cost? One sweep as a matrix of cells."""

import itertools
from datetime import UTC, datetime

import streamlit as st

from client import RotBench, Run, Sweep
from dashboard import choices, live, questions, shell, viewport
from dashboard.connection import Answer, line
from dashboard.downloads import chart
from dashboard.figures.cells import cells_figure, cells_sheet
from dashboard.grids import SEED, Matrix, cost, matrix, name_of
from dashboard.views import sweeps_deeds as deeds
from dashboard.views.stability_parts import progress
from dashboard.words import duration, plural

MOST = 1000
"""At most so many runs of a sweep are drawn."""
SHADES = ("State", "Accuracy")


@shell.guarded
def page() -> None:
    """The page of sweeps."""
    shell.masthead("Sweeps", "Which combinations were trained, how far are they, and what do they cost?")
    deeds.told()
    found = _sweeps()
    if not found.value:
        live.region(_nothing_yet, lambda: live.Outline(waiting=True, choices=(bool(_sweeps().value),)))
        return
    sweep, across, shade = _controls(found.value)
    live.region(lambda: _draw(sweep, across, shade), lambda: _outline(sweep))


def _sweeps() -> Answer[tuple[Sweep, ...]]:
    return line().ask("sweeps", lambda bench: bench.sweep_page(limit=100).items)


def _nothing_yet() -> None:
    answer = _sweeps()
    if answer.value is None:
        shell.no_answer(answer)
        return
    shell.empty(
        "No sweeps yet",
        "A sweep trains every combination of some settings. Start the comparison of RotRNN and LRU, put one together "
        "on the page **Submit**, or from the command line:",
        "rotbench demo\nrotbench sweep --grid model.n_layers=[1,2] --seed 0-2",
    )


def _controls(sweeps: tuple[Sweep, ...]) -> tuple[Sweep, str, str]:
    labels = {choices.sweep_label(sweep): sweep for sweep in sweeps}
    choices.begin("sweep", next(iter(labels)), list(labels))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        label = st.selectbox("Sweep", list(labels), index=None, key="sweep", bind="query-params", width=330)
        sweep = labels.get(label or "", sweeps[0])
        fields = {name_of(field): field for field in sweep.grid}
        across = SEED if SEED in sweep.grid else (list(sweep.grid) or [SEED])[-1]
        if len(fields) > 1:
            choices.begin("across", name_of(across), list(fields))
            picked = st.segmented_control(
                "Columns",
                list(fields),
                key="across",
                bind="query-params",
                required=True,
                help="The setting that goes across; every combination of the others has a row.",
            )
            across = fields.get(picked or "", across)
        choices.begin("shade", SHADES[0], SHADES)
        shade = st.segmented_control(
            "Shade",
            SHADES,
            key="shade",
            bind="query-params",
            required=True,
            help="**State**: the colour says how far a run is. **Accuracy**: pale is the lowest of this sweep, full "
            "the highest; on the test split, on the validation split until that is measured.",
        )
    return sweep, across, shade or SHADES[0]


def _runs(sweep: Sweep) -> Answer[tuple[Run, ...]]:
    """The sweep's runs in the order of the grid."""

    def read(bench: RotBench) -> tuple[Run, ...]:
        order = {run_id: at for at, run_id in enumerate(bench.get_sweep(sweep.id).runs)}
        found = itertools.islice(bench.runs(sweep_id=sweep.id, limit=200), MOST)
        return tuple(sorted(found, key=lambda run: order.get(run.id, len(order))))

    return questions.about(sweep, ("runs of",), read, fresh_s=2.0).ask()


def _fresh(sweep: Sweep) -> Sweep:
    return next((one for one in _sweeps().value or () if one.id == sweep.id), sweep)


def _outline(sweep: Sweep) -> live.Outline:
    moving = questions.moves(_fresh(sweep))
    return live.Outline(
        moving, waiting=line().away_since is not None, choices=tuple(one.id for one in _sweeps().value or ())
    )


def _draw(sweep: Sweep, across: str, shade: str) -> None:
    shell.away_banner()
    now = _fresh(sweep)
    progress(now)
    answer = _runs(now)
    if answer.value is None:
        shell.no_answer(answer)
        return
    runs = answer.value
    if not runs:
        st.info("Every run of this sweep was deleted.", icon=":material/delete:")
        return
    _facts(now, runs)
    if len(runs) < now.total and len(runs) >= MOST:
        st.caption(f"The newest {MOST:,} of {now.total:,} runs are drawn.")
    with st.container(horizontal=True, gap="small"):
        deeds.buttons(now)
        if st.button("Its runs as a list", icon=":material/list:", key="as-list"):
            st.switch_page(st.session_state["pages"]["runs"], query_params={"of": choices.sweep_label(now)})
        if st.button("Compare its cells", icon=":material/show_chart:", key="as-figure"):
            st.switch_page(st.session_state["pages"]["stability"], query_params={"sweep": choices.sweep_label(now)})
    grid = dict(now.grid)
    if len({run.seed for run in runs}) > 1:
        grid.setdefault(SEED, [])
    _cells(matrix(runs, grid, across), shade)


def _facts(sweep: Sweep, runs: tuple[Run, ...]) -> None:
    found = cost(runs, datetime.now(UTC))
    tested = sum("test_accuracy" in run.latest for run in runs)
    facts = [
        ("Ended", f"{sweep.done:,} / {sweep.total:,}", "Succeeded, diverged, failed or cancelled."),
        ("Tested", f"{tested:,}", "Runs with a test accuracy."),
        ("Device time so far", duration(found.spent_s), "Over all runs, from the first start of each to its end."),
        (
            "Device time left",
            duration(found.left_s) if sweep.active else "none",
            "Steps left, by the pace of runs of the same task, cell and depth.",
        ),
        (
            "Time left",
            duration(found.wall_left_s) if sweep.active else "none",
            f"If as many runs train at once as now ({found.lanes}).",
        ),
        ("Taken over", f"{sweep.reused:,}", "Runs that another submission had made."),
    ]
    with st.container(horizontal=True, gap="small", key="facts"):
        for label, value, meaning in facts:
            st.metric(label, value, help=meaning, width=165)


def _cells(found: Matrix, shade: str) -> None:
    shell.section(
        "The grid",
        "One cell per run. The sign says its state, the number its accuracy in percent (on the test split, on the "
        "validation split until that is measured), for a run that trains how far it is; ! marks a run that is stuck "
        "at chance. A click opens the run.",
    )
    width = viewport.columns()
    clicked = chart(
        lambda mode: cells_figure(found, "State" if shade == "State" else "Accuracy", mode, columns=width),
        "cells",
        alt=f"{plural(len(found.runs), 'run')} by {found.across}, with state and accuracy",
        sheet=lambda: cells_sheet(found),
        select=True,
    )
    if clicked is not None:
        st.switch_page(st.session_state["pages"]["run"], query_params={"id": str(clicked)})
