"""What does the reader of the stability page look at? Comparison, statistic, task, depth and single seeds."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from client import HiddenNormComparison, ProfileGroup, SurvivalGroup, Sweep
from dashboard import choices, questions
from dashboard.questions import Question
from dashboard.words import BY_TITLE, STATISTICS, Statistic

FEWEST_STEPS, MOST_STEPS = 40, 160
MOST_POINTS = 24_000


@dataclass(frozen=True)
class Chosen:
    """What the reader looks at; sweep None is over all runs, depth None is every depth."""

    sweep: Sweep | None
    task: str | None
    statistic: Statistic
    depth: int | None
    single_seeds: bool
    most_steps: int

    @property
    def sweep_id(self) -> str | None:
        """The sweep's id."""
        return self.sweep.id if self.sweep else None

    def holds(self, *, task: str, depth: int) -> bool:
        """Whether runs of that task and depth are looked at."""
        return self.task in (None, task) and self.depth in (None, depth)


def norms(chosen: Chosen) -> Question[HiddenNormComparison]:
    """The norms that are drawn."""
    return questions.norms(
        chosen.sweep,
        chosen.task,
        chosen.depth,
        chosen.statistic.name,
        single_seeds=chosen.single_seeds,
        most_steps=chosen.most_steps,
    )


def profiles(chosen: Chosen, step: int | None) -> Question[tuple[ProfileGroup, ...]]:
    """The norms along the sequence at the last kept step, or at the last up to `step`."""
    return questions.profiles(chosen.sweep, chosen.task, chosen.depth, chosen.statistic.name, step)


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
        groups = questions.lives(sweep).ask().value or ()
        task = _task_choice(groups)
        depth = _depth_choice([group for group in groups if task in (None, group.task)])
        single = st.toggle(
            "Single seeds",
            key="seeds",
            bind="query-params",
            help="Draw every seed beside the mean. Diverged seeds are drawn always.",
        )
    st.caption(f"**{statistic.title}.** {statistic.meaning}")
    shown = [group for group in groups if task in (None, group.task) and depth in (None, group.depth)]
    return Chosen(sweep, task, statistic, depth, single, _most_steps(shown, single))


def _most_steps(groups: Sequence[SurvivalGroup], single_seeds: bool) -> int:
    """How many steps of each curve are drawn: fewer where the curves are many, so that the figure stays small."""
    curves = sum(group.depth * (1 + len(group.run_ids) * single_seeds) for group in groups)
    return max(FEWEST_STEPS, min(MOST_STEPS, MOST_POINTS // max(1, curves)))


def _task_choice(groups: Sequence[SurvivalGroup]) -> str | None:
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


def _depth_choice(groups: Sequence[SurvivalGroup]) -> int | None:
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
