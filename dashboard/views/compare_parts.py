"""What stands below the curves of a comparison? Paired differences, accuracy against cost, and reported results."""

import streamlit as st

from client import Difference
from dashboard import choices, comparing, questions, shell, viewport
from dashboard.connection import line
from dashboard.downloads import chart
from dashboard.figures.frontier import frontier_figure, frontier_sheet, points
from dashboard.questions import Question
from dashboard.views.compare_choices import Chosen, succeeded
from dashboard.words import percent, plain

COSTS = {
    "Parameters": ("parameters", "trained parameters"),
    "State": ("state_size", "numbers carried from step to step"),
    "Operations": ("flops_per_token", "operations per token"),
    "Time": ("", "seconds per update"),
}
LAST = frozenset({"validation_accuracy", "validation_loss", "test_accuracy", "train_loss", "train_accuracy"})
"""Metrics whose last value says something."""


def differing(chosen: Chosen) -> Question[tuple[Difference, ...]]:
    """The differences, as they are asked for."""
    key = _last_key(chosen)
    return questions.about(
        chosen.sweep,
        ("differences", key, *chosen.question),
        lambda bench: bench.differences(
            key,
            sweep_id=chosen.sweep_id,
            task=chosen.task,
            cell=list(chosen.cells),
            depth=list(chosen.depths),
        ),
        fresh_s=5.0,
    )


def _last_key(chosen: Chosen) -> str:
    return chosen.metric.key if chosen.metric.key in LAST else "test_accuracy"


def differences(chosen: Chosen) -> None:
    """The last value of the metric against RotRNN's, at equal depth and seed."""
    key, rows = _last_key(chosen), differing(chosen).ask()
    if not rows.value:
        return
    shell.section(
        "Against RotRNN, seed by seed",
        f"The last value of {key.replace('_', ' ')} in each cell minus RotRNN's with the same depth and seed: mean "
        "with its 95% interval (Student's t). **Effect size**: that mean over its standard deviation. **p (Holm)**: of "
        "the two-sided paired t test, corrected over the depths of the cell.",
    )
    st.dataframe(
        comparing.differences_sheet(rows.value),
        hide_index=True,
        height="content",
        column_config={
            "Cell": shell.cell_column({row.cell for row in rows.value}, pinned=True),
            "Depth": st.column_config.NumberColumn(width=70),
            "Seeds": st.column_config.NumberColumn(width=70, help="n: pairs of equal depth and seed."),
        },
        alt="Paired differences to RotRNN",
    )


def frontier(chosen: Chosen) -> None:
    """Test accuracy against what a network costs."""
    found = questions.stability(chosen.sweep, chosen.task).ask().value
    if found is None or not any(row.estimate is not None for row in found.accuracy):
        return
    shell.section(
        "Accuracy against cost",
        "Test accuracy of the network with the best validation accuracy: mean over seeds with its 95% interval "
        "(Student's t). The number beside a marker is the depth. **Operations**: multiplications and additions of a "
        "forward pass, per token. **Time**: from start to end of the succeeded runs, per update, evaluation included.",
    )
    choices.begin("cost", "Parameters", list(COSTS))
    picked = st.segmented_control(
        "Cost", list(COSTS), key="cost", bind="query-params", required=True, label_visibility="collapsed"
    )
    name, axis = COSTS[picked or "Parameters"]
    known = comparing.costs(found, name) if name else comparing.seconds_per_step(succeeded(chosen).ask().value or ())
    shown = points(
        [
            row
            for row in found.accuracy
            if (not chosen.cells or row.cell in chosen.cells) and (not chosen.depths or row.depth in chosen.depths)
        ],
        known,
    )
    if not shown:
        st.info("This cost is not known for these runs.", icon=":material/hourglass_empty:")
        return
    width = viewport.columns()
    chart(
        lambda mode: frontier_figure(shown, axis, mode, columns=width),
        "frontier",
        alt=f"Test accuracy against {axis}, one point per cell and depth",
        sheet=lambda: frontier_sheet(shown, axis),
    )


def beside(chosen: Chosen) -> None:
    """Results here beside reported ones; those of a stand-in by themselves."""
    found = questions.stability(chosen.sweep, chosen.task).ask().value
    tasks = {task.name: task for task in line().ask("tasks", lambda bench: bench.tasks(), fresh_s=60.0).value or ()}
    task = tasks.get(chosen.task or "")
    if found is None or task is None or not found.accuracy:
        return
    shell.section(
        "Results",
        "Test accuracy: mean over seeds (95% interval, n). Reported figures stand in a column of their own, with their "
        "source and mark: **sourced** as the source states it, **unverified** where no one here has seen it there. "
        "They were reached with other settings and budgets.",
    )
    if task.stand_in:
        floor = "" if task.floor is None else f" Any useful network is above {percent(task.floor)}."
        st.caption(
            f"{plain(task.title)} is a stand-in for machines without a GPU: its numbers never stand beside published "
            f"ones.{floor}"
        )
        sheet = comparing.stand_in_sheet([row for row in found.accuracy if row.task == task.name])
    else:
        sheet = comparing.beside_reported(task, found.accuracy)
    st.dataframe(
        sheet,
        hide_index=True,
        height="content",
        column_config={
            "Model": st.column_config.TextColumn(width=240, pinned=True),
            "Note": st.column_config.TextColumn(width=260),
        },
        alt="Test accuracy here and as reported",
    )
