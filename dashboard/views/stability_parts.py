"""What does the stability page show, part by part? Progress, verdict, figures and tables of one comparison."""

from collections.abc import Sequence

import streamlit as st

from client import HiddenNormComparison, HiddenNormGroup, Stability, Sweep
from dashboard import questions, shell, viewport
from dashboard.downloads import chart
from dashboard.figures.heat import heat_figure
from dashboard.figures.norms import norms_figure
from dashboard.figures.spread import spread_figure
from dashboard.palette import status_look
from dashboard.series_sheets import norms_sheet
from dashboard.sheets import numbers_sheet, over_depth_sheet, paired_sheet, stability_sheet
from dashboard.views import stability_words as said
from dashboard.views.stability_choices import Chosen
from dashboard.words import day_and_clock, listed, plain, plural


def progress(sweep: Sweep) -> None:
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
    if questions.moves(sweep):
        st.progress(sweep.done / sweep.total if sweep.total else 0.0)


def no_norms_yet(sweep: Sweep | None) -> None:
    """In place of figures without a single value."""
    waiting = sweep is not None and questions.moves(sweep)
    with st.container(border=True):
        st.header("No hidden norms yet", anchor=False)
        st.markdown(
            "The runs are in the queue; the first values arrive as soon as a worker has begun."
            if waiting
            else "None of these runs has left a trace of its hidden norms. `rotbench runs` lists what became of them."
        )


def claim(numbers: Stability) -> None:
    """The verdict in one sentence, what it rests on in another, and the whole of it on demand."""
    found = numbers.claim
    st.header(said.headline(found), anchor=False)
    st.markdown(said.gist(numbers))
    with st.expander("Both halves of the claim, in full", icon=":material/balance:"):
        for finding, title in (
            (found.rotrnn_constant, "RotRNN stays nearly constant"),
            (found.lru_not_constant, "LRU does not"),
        ):
            look = said.verdict(finding)
            st.badge(f"{title}: {look.word}", icon=f":material/{look.icon}:", color=look.colour)
            st.markdown(plain(finding.text))


def warn(warnings: list[str], most: int = 5) -> None:
    """What the API has to say about the comparison, in one box."""
    said = [plain(warning) for warning in dict.fromkeys(warnings)]
    if said:
        more = [f"and {len(said) - most} more"] if len(said) > most else []
        lines = [*said[:most], *more]
        st.warning("\n".join(f"- {one}" for one in lines) if len(lines) > 1 else said[0], icon=":material/warning:")


def norms_while_training(chosen: Chosen, shown: HiddenNormComparison) -> None:
    """The norms against the step."""
    width, groups = viewport.columns(), shown.groups
    diverged = questions.diverged(chosen.sweep).ask()
    ended = [run for run in diverged.value or () if chosen.holds(task=run.task, depth=run.depth)]
    shell.section(
        "Hidden norm while training",
        "Measured on one fixed batch of the validation split, padding left out, before the first step and at regular "
        "steps. Line: geometric mean over seeds. Band: its 95% interval, that is Student's t interval of the mean of "
        "ln(norm), taken back by exp, so it never falls to zero. All panels share one logarithmic axis. A "
        "cross ends the curve of a diverged seed; a triangle on the floor marks a step where a seed was left out "
        "because its value is not finite.",
    )
    chart(
        lambda mode: norms_figure(
            shown,
            chosen.statistic,
            mode,
            columns=width,
            single_seeds=chosen.single_seeds,
            divergences={run.id: run.divergence for run in ended},
        ),
        "norms",
        sheet=lambda: norms_sheet(groups),
        alt=f"{chosen.statistic.axis} against training step, one panel per layer, one line per cell",
    )
    if ended:
        st.caption(said.diverged(ended))


def growth(groups: Sequence[HiddenNormGroup]) -> None:
    """The maps of the norms' growth."""
    if not any(len(group.steps) > 1 for group in groups):
        return
    columns = 3 if viewport.columns() > 1 else 1
    shell.section(
        "Where and when it moves",
        "The geometric mean over seeds, divided by its value at the first recorded step, on one colour scale for all "
        "maps: ochre has grown, violet has shrunk, the page's own colour is unchanged.",
    )
    chart(
        lambda mode: heat_figure(groups, mode, columns=columns),
        "heat",
        sheet=lambda: norms_sheet(groups),
        alt="Growth of the hidden norm by layer and training step, one map per cell",
    )


def numbers(found: Stability) -> None:
    """The stability numbers as a figure and as tables."""
    cells = shell.cell_column({row.cell for row in found.rows}, pinned=True)
    shell.section(
        "Stability numbers",
        "Each number is a mean over seeds with its 95% interval. "
        + " ".join(f"**{measure.title}**: {measure.definition}." for measure in found.measures)
        + " Spreads are written as factors: \u00d71.07 means that the largest norm is 7 % above the smallest.",
    )
    width = min(4, viewport.columns())
    chart(
        lambda mode: spread_figure(found.measures, found.rows, mode, columns=width),
        "spread",
        sheet=lambda: numbers_sheet(found),
        alt="Stability numbers with 95% intervals per cell and depth",
    )
    st.dataframe(
        stability_sheet(found),
        hide_index=True,
        height="content",
        column_config=said.stability_columns(found, cells),
        alt="Stability numbers per depth and cell",
    )
    if found.paired:
        shell.section(
            "Seed by seed against RotRNN",
            "The spread over training of an LRU minus that of RotRNN with the same depth and seed, mean over seeds "
            "with its 95% interval, at each depth and over all of them. As a factor: \u00d72 means that the LRU's norm "
            "moves over twice as wide a range. **Settles later by**: the same difference of the settling steps; "
            "negative where the LRU settles first.",
        )
        st.dataframe(
            paired_sheet(found),
            hide_index=True,
            height="content",
            column_config=said.paired_columns(cells),
            alt="Paired differences of the spread over training",
        )
    if found.over_depth and found.depth_measure is not None:
        shell.section(
            "Over depths",
            f"**{found.depth_measure.title}**: {found.depth_measure.definition}. Mean over the seeds that have every "
            "depth, with its 95% interval, as a factor: \u00d71 means that depth makes no difference.",
        )
        st.dataframe(
            over_depth_sheet(found),
            hide_index=True,
            height="content",
            column_config=said.over_depth_columns(cells),
            alt="Spread of the final norms over depths",
        )
    with st.expander("All numbers, to sort and to download", icon=":material/table:"):
        st.dataframe(numbers_sheet(found), hide_index=True, column_config=said.number_columns(), alt="All numbers")
    accuracy = listed([f"{row.task}" for row in {r.task: r for r in found.accuracy}.values()])
    if accuracy:
        st.caption(f"Test accuracy on {plain(accuracy)}, of the network with the best validation accuracy.")
