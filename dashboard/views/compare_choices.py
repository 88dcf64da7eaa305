"""What does the reader of the comparison look at? Runs, metric, axis, grouping and filters, all in the address."""

import itertools
from dataclasses import dataclass

import streamlit as st

from client import RotBench, Run, Sweep
from dashboard import choices, questions
from dashboard.figures.metrics import METRICS, Metric
from dashboard.grids import SEED, name_of
from dashboard.questions import Question

MOST_RUNS = 1000
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


def tasks_of(sweep: Sweep | None) -> tuple[str, ...]:
    """The tasks of the chosen runs."""
    return tuple(sorted({group.task for group in questions.lives(sweep).ask().value or ()}))


def succeeded(chosen: Chosen) -> Question[tuple[Run, ...]]:
    """The runs whose times say what a step takes."""

    def read(bench: RotBench) -> tuple[Run, ...]:
        found = bench.runs(sweep_id=chosen.sweep_id, task=chosen.task, status="succeeded", limit=200)
        return tuple(itertools.islice(found, MOST_RUNS))

    return questions.about(chosen.sweep, ("succeeded", chosen.task), read, fresh_s=10.0)


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
    there = [group for group in questions.lives(sweep).ask().value or () if task in (None, group.task)]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        cells = choices.cells("Cells", there, placeholder="all", width=250)
        depths = choices.depths("Depths", there, placeholder="all", width=140)
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
    tasks = tasks_of(sweep)
    if len(tasks) < 2:
        return tasks[0] if tasks else None
    choices.begin("task", tasks[0], tasks)
    return st.selectbox("Task", tasks, index=None, key="task", bind="query-params", width=180) or tasks[0]
