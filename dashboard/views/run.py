"""How did one run go? Its state in plain words, curves, norms layer by layer, log, configuration and attempts."""

from collections.abc import Mapping
from functools import partial

import streamlit as st
from plotly.graph_objects import Figure

from client import HiddenNormTrace, MetricSeries, Run
from dashboard import choices, deeds, live, shell, viewport
from dashboard.connection import Answer, line
from dashboard.downloads import chart
from dashboard.figures.curves import CURVES, Curve, metric_figure
from dashboard.figures.layers import layers_figure
from dashboard.palette import Mode, cell_title, status_look
from dashboard.questions import MOVING
from dashboard.series_sheets import metrics_sheet, trace_sheet
from dashboard.sheets import STUCK, title, why
from dashboard.views.run_tabs import tabs
from dashboard.words import (
    BY_TITLE,
    FAILURES,
    NOTHING,
    STATISTICS,
    day_and_clock,
    duration,
    number,
    percent,
    plain,
)

POINTS = 1500
"""At most so many points of one curve; the API keeps each bucket's extremes."""


@shell.guarded
def page() -> None:
    """One run."""
    st.page_link(st.session_state["pages"]["runs"], label="All runs", icon=":material/arrow_back:")
    run_id = st.query_params.get("id", "")
    deeds.conversation()
    found = _run(run_id)
    if found.value is None:
        live.region(lambda: _missing(run_id), lambda: live.Outline(waiting=line().away_since is not None))
        return
    live.region(lambda: _draw(run_id), lambda: _outline(run_id))


def _run(run_id: str) -> Answer[Run]:
    return line().ask(("run", run_id), lambda bench: bench.run(run_id))


def _missing(run_id: str) -> None:
    answer = _run(run_id)
    if answer.value is not None:
        st.rerun()
    st.title("Run", anchor=False)
    if not run_id:
        st.info("This address names no run. Choose one from the list.", icon=":material/link_off:")
        return
    shell.no_answer(answer)


def _outline(run_id: str) -> live.Outline:
    run = _run(run_id).value
    return live.Outline(run is not None and run.status in MOVING, waiting=line().away_since is not None)


def _draw(run_id: str) -> None:
    answer = _run(run_id)
    if answer.value is None:
        shell.no_answer(answer)
        return
    run = answer.value
    shell.away_banner()
    _head(run)
    _facts(run)
    _curves(run)
    _norms(run)
    tabs(run)


def _head(run: Run) -> None:
    look = status_look(run.status)
    st.title(plain(title(run)), anchor=False)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.badge(look.word, icon=f":material/{look.icon}:", color=look.colour, help=f"{look.word}: {look.meaning}.")
        st.markdown(
            f":gray[{cell_title(run.cell)}, depth {run.depth}, seed {run.seed}, {plain(run.task)}, "
            f"submitted {day_and_clock(run.created_at, shell.zone())}]",
            width="content",
        )
    reason = why(run)
    if run.status == "failed":
        known = FAILURES.get(run.failure_class or "", "It ended by a fault.")
        st.error(f"**{known}** {plain(reason)}", icon=":material/error:")
    elif run.status == "diverged":
        st.warning(
            f"**It diverged: {plain(reason)}.** Its curves up to there are below.", icon=":material/trending_up:"
        )
    elif run.stuck:
        st.warning(
            f"**{STUCK.capitalize()}.** It counts as lost, never as an average.", icon=":material/trending_flat:"
        )
    elif run.below_floor:
        st.warning(
            "**Its test accuracy is below the task's floor**, which a simple method reaches without any recurrence: "
            "do not read it as a result.",
            icon=":material/vertical_align_bottom:",
        )
    elif run.status in ("cancelled", "paused", "cancelling") or (run.status == "queued" and reason):
        st.info(plain(reason[:1].upper() + reason[1:]) + ".", icon=f":material/{look.icon}:")
    with st.container(horizontal=True, gap="small"):
        deeds.buttons([run], "run")


def _facts(run: Run) -> None:
    if run.status in MOVING or run.status == "paused":
        st.progress(run.progress, text=f"Step {run.step:,} of {run.total_steps:,}")
    tested = "test_accuracy" in run.latest
    took = (run.finished_at - run.started_at).total_seconds() if run.finished_at and run.started_at else None
    facts = [
        ("Step", f"{run.step:,} / {run.total_steps:,}", "Optimiser updates, done / planned."),
        (
            "Test accuracy" if tested else "Validation accuracy",
            percent(run.latest.get("test_accuracy", run.latest.get("validation_accuracy"))),
            "Share right on the whole split.",
        ),
        ("Training loss", number(run.latest.get("train_loss")), "Cross entropy of the last logged batch, in nat."),
        ("Parameters", NOTHING if run.parameter_count is None else f"{run.parameter_count:,}", None),
        (
            ("Time left", duration(run.seconds_left), "From the pace of the present attempt.")
            if run.status == "running"
            else ("Took", duration(took), "From the first start to the end.")
        ),
        ("Device", run.device or NOTHING, None),
    ]
    with st.container(horizontal=True, gap="small", key="facts"):
        for label, value, help_text in facts:
            st.metric(label, value, help=help_text, width=165)


def _series(run: Run) -> Answer[dict[str, MetricSeries]]:
    keys = [key for curve in CURVES for key, _ in curve.keys]
    return line().ask(("metrics", run.id), lambda bench: bench.metrics(run.id, keys, max_points=POINTS))


def _curves(run: Run) -> None:
    series: Mapping[str, MetricSeries] = _series(run).value or {}
    if not any(one.steps for one in series.values()):
        st.info("No curves yet: the first value arrives with the first logged step.", icon=":material/hourglass_empty:")
        return
    shell.section("Curves", "Thinned for the page; the extremes of every stretch of steps are kept.")
    for pair in (CURVES[:2], CURVES[2:]):
        for place, curve in zip(st.columns(2, gap="medium"), pair, strict=True):
            with place:
                st.markdown(f"**{curve.title}**", help=curve.help)
                chart(
                    partial(_curve, curve, series, run),
                    f"curve-{curve.title}",
                    alt=f"{curve.title} against training step",
                    sheet=partial(metrics_sheet, series, [key for key, _ in curve.keys]),
                )


def _curve(curve: Curve, series: Mapping[str, MetricSeries], run: Run, mode: Mode) -> Figure:
    return metric_figure(curve, series, run.cell, mode, divergence=run.divergence)


def _norms(run: Run) -> None:
    titles = [statistic.title for statistic in STATISTICS]
    answer: Answer[HiddenNormTrace] = line().ask(("norms of", run.id), lambda bench: bench.hidden_norms(run.id))
    if answer.value is None or not any(series.steps for series in answer.value.series):
        return
    shell.section(
        "Hidden norm, layer by layer", "Measured on one fixed batch of the validation split, before and while training."
    )
    choices.begin("statistic", titles[0], titles)
    picked = st.segmented_control(
        "Statistic", titles, key="statistic", bind="query-params", required=True, label_visibility="collapsed"
    )
    statistic = BY_TITLE.get(picked or "", STATISTICS[0])
    st.caption(statistic.meaning)
    trace, width = answer.value, viewport.columns()
    chart(
        lambda mode: layers_figure(trace, statistic, run.cell, mode, columns=width, divergence=run.divergence),
        "layers",
        sheet=lambda: trace_sheet(trace, statistic.name),
        alt=f"{statistic.axis} against training step, one line per layer",
    )
