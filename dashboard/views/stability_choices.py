"""What does the reader of the stability page look at? Comparison, statistic, task, depth and single seeds."""

from dataclasses import dataclass

import streamlit as st

from client import HiddenNormComparison, HiddenNormGroup, Sweep
from dashboard import choices
from dashboard.connection import Answer, line
from dashboard.words import BY_TITLE, STATISTICS, Statistic


@dataclass(frozen=True)
class Chosen:
    """What the reader looks at; sweep None is over all runs, depth None is every depth."""

    sweep: Sweep | None
    task: str | None
    statistic: Statistic
    depth: int | None
    single_seeds: bool

    @property
    def sweep_id(self) -> str | None:
        """The sweep's id."""
        return self.sweep.id if self.sweep else None

    def holds(self, *, task: str, depth: int) -> bool:
        """Whether runs of that task and depth are looked at."""
        return self.task in (None, task) and self.depth in (None, depth)


def norms(sweep_id: str | None, statistic: Statistic) -> Answer[HiddenNormComparison]:
    """The norms of every depth, without single seeds."""
    return line().ask(
        ("norms", sweep_id, statistic.name),
        lambda bench: bench.compare_hidden_norms(statistic=statistic.name, sweep_id=sweep_id, scale="log"),
    )


def controls(sweeps: tuple[Sweep, ...]) -> Chosen:
    """The row of choices, each bound to the address."""
    labels = {choices.sweep_label(sweep): sweep for sweep in sweeps}
    options = [*labels, choices.ALL_RUNS]
    choices.begin("sweep", options[0], options)
    titles = [statistic.title for statistic in STATISTICS]
    choices.begin("statistic", titles[0], titles)
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
        title = st.segmented_control(
            "Statistic",
            titles,
            key="statistic",
            bind="query-params",
            required=True,
            help="\n\n".join(f"**{statistic.title}**: {statistic.meaning}" for statistic in STATISTICS),
        )
        statistic = BY_TITLE.get(title or "", STATISTICS[0])
        found = norms(sweep.id if sweep else None, statistic).value
        groups = found.groups if found else ()
        task = _task_choice(groups)
        depth = _depth_choice([group for group in groups if task in (None, group.task)])
        single = st.toggle(
            "Single seeds",
            key="seeds",
            bind="query-params",
            help="Draw every seed beside the mean. Diverged seeds are drawn always.",
        )
    st.caption(f"**{statistic.title}.** {statistic.meaning}")
    return Chosen(sweep, task, statistic, depth, single)


def _task_choice(groups: tuple[HiddenNormGroup, ...]) -> str | None:
    tasks = sorted({group.task for group in groups})
    if len(tasks) < 2:
        return tasks[0] if tasks else None
    choices.begin("task", tasks[0], tasks)
    return st.selectbox(
        "Task",
        tasks,
        index=None,
        key="task",
        bind="query-params",
        width=180,
        help="Norms of different tasks are never drawn in one figure.",
    )


def _depth_choice(groups: list[HiddenNormGroup]) -> int | None:
    depths = sorted({group.depth for group in groups})
    if len(depths) < 2:
        return depths[0] if depths else None
    options = [*map(str, depths), choices.ALL_DEPTHS]
    choices.begin("depth", options[-2], options)
    picked = st.segmented_control(
        "Depth",
        options,
        key="depth",
        bind="query-params",
        required=True,
        help="Number of layers of the network. Layer 0 is next to the input.",
    )
    return None if picked in (None, choices.ALL_DEPTHS) else int(picked)
