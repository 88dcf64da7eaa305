"""What does the reader of the comparison look at? Runs, metric, axis, grouping and filters, all in the address."""

from dataclasses import dataclass

import streamlit as st

from client import Sweep
from dashboard import choices
from dashboard.connection import line
from dashboard.figures.metrics import METRICS, Metric
from dashboard.grids import SEED, name_of

ALONG = ("Step", "Wall time", "Tokens")
BY_TITLE = {metric.title: metric for metric in METRICS}


@dataclass(frozen=True)
class Chosen:
    """What the reader looks at; sweep None is over all runs; no cells or depths are all of them."""

    sweep: Sweep | None
    task: str | None
    metric: Metric
    along: str
    fields: tuple[str, ...]
    cells: tuple[str, ...]
    depths: tuple[int, ...]

    @property
    def sweep_id(self) -> str | None:
        """The sweep's id."""
        return self.sweep.id if self.sweep else None

    @property
    def question(self) -> tuple[object, ...]:
        """What tells one choice of runs and groups from another."""
        return self.sweep_id, self.task, self.fields, self.cells, self.depths


def tasks_of(sweep_id: str | None) -> tuple[str, ...]:
    """The tasks of the chosen runs, among the newest 200."""
    found = line().ask(("runs to compare", sweep_id), lambda bench: bench.run_page(sweep_id=sweep_id, limit=200).items)
    return tuple(sorted({run.task for run in found.value or ()}))


def controls(sweeps: tuple[Sweep, ...]) -> Chosen:
    """Two rows of choices, each bound to the address."""
    labels = {choices.sweep_label(sweep): sweep for sweep in sweeps}
    options = [*labels, choices.ALL_RUNS]
    choices.begin("sweep", options[0], options)
    choices.begin("metric", METRICS[0].title, list(BY_TITLE))
    choices.begin("along", ALONG[0], ALONG)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        label = st.selectbox(
            "Comparison",
            options,
            index=None,
            key="sweep",
            bind="query-params",
            width=330,
            help="A sweep, the newest first, or every run that is stored.",
        )
        sweep = labels.get(label or "")
        task = _task(sweep)
        title = st.selectbox("Metric", list(BY_TITLE), index=None, key="metric", bind="query-params", width=250)
        along = st.segmented_control("Along", ALONG, key="along", bind="query-params", required=True)
    found = line().ask(
        ("runs to compare", sweep.id if sweep else None),
        lambda bench: bench.run_page(sweep_id=sweep.id if sweep else None, limit=200).items,
    )
    runs = [run for run in found.value or () if task in (None, run.task)]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        cells = choices.cells("Cells", runs, placeholder="all", width=250)
        depths = choices.depths("Depths", runs, placeholder="all", width=140)
        splits = {name_of(field): field for field in _splitting(sweep)}
        fields = (
            st.multiselect(
                "Split by",
                list(splits),
                key="by",
                bind="query-params",
                placeholder="cell and depth alone",
                width=250,
                help="Further settings of this sweep; each value gets lines of its own.",
            )
            if splits
            else []
        )
    return Chosen(
        sweep,
        task,
        BY_TITLE.get(title or "", METRICS[0]),
        along or ALONG[0],
        tuple(splits[name] for name in fields if name in splits),
        tuple(cells),
        tuple(depths),
    )


def _splitting(sweep: Sweep | None) -> list[str]:
    """Fields of the grid that neither the cell, the depth, the task nor the seed is."""
    known = {"model.cell", "model.n_layers", "task.name", SEED}
    return [field for field in (sweep.grid if sweep else ()) if field not in known]


def _task(sweep: Sweep | None) -> str | None:
    tasks = tasks_of(sweep.id if sweep else None)
    if len(tasks) < 2:
        return tasks[0] if tasks else None
    choices.begin("task", tasks[0], tasks)
    return st.selectbox("Task", tasks, index=None, key="task", bind="query-params", width=180) or tasks[0]
