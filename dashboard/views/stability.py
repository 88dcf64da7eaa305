"""Does the hidden state keep its length while the network learns? The comparison of the cells, with its numbers."""

from dataclasses import dataclass

import streamlit as st

from client import Divergence, HiddenNormComparison, HiddenNormGroup, Run, Stability, Sweep
from dashboard import choices, live, shell, viewport
from dashboard.connection import Answer, line
from dashboard.figures.canvas import MODEBAR
from dashboard.figures.heat import heat_figure
from dashboard.figures.norms import norms_figure
from dashboard.figures.spread import spread_figure
from dashboard.palette import status_look
from dashboard.sheets import numbers_sheet, paired_sheet, stability_sheet
from dashboard.views import stability_words as said
from dashboard.words import BY_TITLE, STATISTICS, Statistic, day_and_clock, listed, plain, plural

MOVING = ("queued", "running", "cancelling")


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


@shell.guarded
def page() -> None:
    """The home page."""
    shell.masthead("Stability", "Does the hidden state keep its length while the network learns?")
    sweeps = _sweeps()
    if sweeps.value is None or not _anything(sweeps.value):
        live.region(_nothing_yet, lambda: live.Outline(False, True, (_anything(_sweeps().value or ()),)))
        return
    chosen = _controls(sweeps.value)
    live.region(lambda: _draw(chosen), lambda: _outline(chosen))


def _sweeps() -> Answer[tuple[Sweep, ...]]:
    return line().ask("sweeps", lambda bench: bench.sweep_page(limit=100).items)


def _anything(sweeps: tuple[Sweep, ...]) -> bool:
    runs = line().ask(("runs", "any"), lambda bench: bench.run_page(limit=1).items)
    return bool(sweeps) or bool(runs.value)


def _nothing_yet() -> None:
    sweeps = _sweeps()
    if sweeps.value is None:
        shell.no_answer(sweeps)
        return
    shell.away_banner()
    shell.empty(
        "No runs yet",
        "The comparison of RotRNN and LRU over seeds and depths takes minutes on two CPU cores:",
        "rotbench demo",
    )


def _norms(sweep_id: str | None, statistic: Statistic) -> Answer[HiddenNormComparison]:
    return line().ask(
        ("norms", sweep_id, statistic.name),
        lambda bench: bench.compare_hidden_norms(statistic=statistic.name, sweep_id=sweep_id),
    )


def _controls(sweeps: tuple[Sweep, ...]) -> Chosen:
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
        found = _norms(sweep.id if sweep else None, statistic).value
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


def _moving(sweep: Sweep | None) -> bool:
    if sweep is None:
        found = line().ask(("runs", "moving"), lambda bench: bench.run_page(status=MOVING, limit=1).items)
        return bool(found.value)
    return any(sweep.counts.get(status) for status in MOVING)


def _fresh(sweep: Sweep | None) -> Sweep | None:
    """The chosen sweep as it stands now."""
    return next((one for one in _sweeps().value or () if sweep and one.id == sweep.id), sweep)


def _outline(chosen: Chosen) -> live.Outline:
    moving = _moving(_fresh(chosen.sweep))
    found = _norms(chosen.sweep_id, chosen.statistic).value
    kinds = sorted({(group.task, group.depth) for group in found.groups}) if found else []
    return live.Outline(moving, line().away_since is not None, (*kinds, *(s.id for s in _sweeps().value or ())))


def _draw(chosen: Chosen) -> None:
    shell.away_banner()
    sweep = _fresh(chosen.sweep)
    if sweep is not None:
        _progress(sweep)
    compared = _norms(chosen.sweep_id, chosen.statistic)
    if compared.value is None:
        shell.no_answer(compared)
        return
    groups = [g for g in compared.value.groups if chosen.task in (None, g.task) and chosen.depth in (None, g.depth)]
    if not groups:
        _no_norms_yet(sweep)
        return
    numbers = line().ask(
        ("stability", chosen.sweep_id, chosen.task),
        lambda bench: bench.stability(sweep_id=chosen.sweep_id, task=chosen.task),
        fresh_s=2.0,
    )
    if numbers.value is not None:
        _claim(numbers.value)
    _warn([*compared.value.warnings, *(numbers.value.warnings if numbers.value else ())])
    _figures(chosen, groups)
    if numbers.value is not None and numbers.value.rows:
        _numbers(numbers.value)


def _warn(warnings: list[str], most: int = 5) -> None:
    """What the API has to say about the comparison, in one box."""
    said = [plain(warning) for warning in dict.fromkeys(warnings)]
    if said:
        more = [f"and {len(said) - most} more"] if len(said) > most else []
        lines = [*said[:most], *more]
        st.warning("\n".join(f"- {one}" for one in lines) if len(lines) > 1 else said[0], icon=":material/warning:")


def _progress(sweep: Sweep) -> None:
    """How far the sweep is, in one line."""
    counted = [(status_look(status), count) for status, count in sweep.counts.items() if count]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(
            f":gray[{plural(sweep.total, 'run')}, submitted {day_and_clock(sweep.created_at, shell.zone())}:]",
            width="content",
        )
        for look, count in counted:
            st.badge(
                f"{count:,} {look.word.lower()}", icon=f":material/{look.icon}:", color=look.colour, help=look.meaning
            )
    if any(sweep.counts.get(status) for status in MOVING):
        st.progress(sweep.done / sweep.total if sweep.total else 0.0)


def _no_norms_yet(sweep: Sweep | None) -> None:
    waiting = sweep is not None and any(sweep.counts.get(status) for status in MOVING)
    with st.container(border=True):
        st.subheader("No hidden norms yet", anchor=False)
        st.markdown(
            "The runs are in the queue; the first values arrive as soon as a worker has begun."
            if waiting
            else "None of these runs has left a trace of its hidden norms. `rotbench runs` lists what became of them."
        )


def _claim(numbers: Stability) -> None:
    """The verdict, and the numbers behind it."""
    claim = numbers.claim
    with st.container(border=True, key="claim"):
        st.subheader(said.headline(claim), anchor=False)
        left, right = st.columns(2, gap="medium")
        for place, finding, title in (
            (left, claim.rotrnn_constant, "RotRNN stays nearly constant"),
            (right, claim.lru_not_constant, "LRU does not"),
        ):
            with place:
                look = said.verdict(finding)
                st.badge(f"{title}: {look.word}", icon=f":material/{look.icon}:", color=look.colour)
                st.markdown(f":small[{plain(finding.text)}]")


def _figures(chosen: Chosen, groups: list[HiddenNormGroup]) -> None:
    width = viewport.columns()
    diverged = line().ask(
        ("runs", "diverged", chosen.sweep_id),
        lambda bench: bench.run_page(sweep_id=chosen.sweep_id, status="diverged", limit=200).items,
    )
    ended = [
        run for run in diverged.value or () if chosen.depth in (None, run.depth) and chosen.task in (None, run.task)
    ]
    shown = HiddenNormComparison(chosen.statistic.name, (), tuple(groups))
    if chosen.single_seeds or ended:
        detailed = _with_seeds(chosen)
        if detailed.value is not None:
            shown = detailed.value
    shell.section(
        "Hidden norm while training",
        "Measured on one fixed batch of the validation split, padding left out, before the first step and at regular "
        "steps. Line: mean over seeds. Band: its 95% interval (Student's t). All panels share one logarithmic axis. A "
        "cross ends the curve of a diverged seed; a triangle on the floor marks a step where a seed was left out "
        "because its value is not finite.",
    )
    st.plotly_chart(
        norms_figure(
            shown,
            chosen.statistic,
            shell.mode(),
            columns=width,
            single_seeds=chosen.single_seeds,
            divergences=_divergences(ended),
        ),
        key="norms",
        config=MODEBAR,
        alt=f"{chosen.statistic.axis} against training step, one panel per layer, one line per cell",
    )
    if ended:
        st.caption(_ended(ended))
    shell.section(
        "Where and when it moves",
        "The mean over seeds, divided by its value at the first recorded step, on one colour scale for all maps: ochre "
        "has grown, violet has shrunk, the page's own colour is unchanged.",
    )
    st.plotly_chart(
        heat_figure(groups, shell.mode(), columns=3 if width > 1 else 1),
        key="heat",
        config=MODEBAR,
        alt="Growth of the hidden norm by layer and training step, one map per cell",
    )


def _with_seeds(chosen: Chosen) -> Answer[HiddenNormComparison]:
    return line().ask(
        ("norms", chosen.sweep_id, chosen.statistic.name, chosen.task, chosen.depth),
        lambda bench: bench.compare_hidden_norms(
            statistic=chosen.statistic.name,
            sweep_id=chosen.sweep_id,
            task=chosen.task,
            depth=chosen.depth,
            runs=True,
        ),
    )


def _divergences(runs: list[Run]) -> dict[str, Divergence | None]:
    return {run.id: run.divergence for run in runs}


def _ended(runs: list[Run]) -> str:
    return said.diverged(runs)


def _numbers(numbers: Stability) -> None:
    cells = shell.cell_column({row.cell for row in numbers.rows}, pinned=True)
    shell.section(
        "Stability numbers",
        "Each number is a mean over seeds with its 95% interval. "
        + " ".join(f"**{measure.title}**: {measure.definition}." for measure in numbers.measures)
        + " Spreads are written as factors: \u00d71.07 means that the largest norm is 7 % above the smallest.",
    )
    st.plotly_chart(
        spread_figure(numbers.measures, numbers.rows, shell.mode(), columns=min(4, viewport.columns())),
        key="spread",
        config=MODEBAR,
        alt="Stability numbers with 95% intervals per cell and depth",
    )
    st.dataframe(
        stability_sheet(numbers),
        hide_index=True,
        height="content",
        column_config=said.stability_columns(numbers, cells),
        alt="Stability numbers per depth and cell",
    )
    if numbers.paired:
        shell.section(
            "Seed by seed against RotRNN",
            "The spread over training of an LRU minus that of RotRNN with the same depth and seed, mean over seeds "
            "with its 95% interval. As a factor: \u00d72 means that the LRU's norm moves over twice as wide a range.",
        )
        st.dataframe(
            paired_sheet(numbers),
            hide_index=True,
            height="content",
            column_config=said.paired_columns(cells),
            alt="Paired differences of the spread over training",
        )
    with st.expander("All numbers, to sort and to download", icon=":material/table:"):
        st.dataframe(numbers_sheet(numbers), hide_index=True, column_config=said.number_columns(), alt="All numbers")
    accuracy = listed([f"{row.task}" for row in {r.task: r for r in numbers.accuracy}.values()])
    if accuracy:
        st.caption(f"Test accuracy on {plain(accuracy)}, after the last step.")
