"""How do cells compare? Any metric over seeds along step, time or tokens; accuracy against cost; reported results."""

import itertools

import streamlit as st

from client import RotBench, Run, Sweep
from client.seeds import MetricComparison
from dashboard import comparing, live, shell, viewport
from dashboard.connection import Answer, line
from dashboard.downloads import chart
from dashboard.figures.metrics import Along, metric_sheet, metrics_figure
from dashboard.views import compare_parts as parts
from dashboard.views.compare_choices import ALONG, Chosen, controls, tasks_of
from dashboard.views.stability_parts import MOVING, warn

MOST_STEPS = 300
"""At most so many steps of each group; its statistics are of all points at each."""
MOST_RUNS = 1000


@shell.guarded
def page() -> None:
    """The page."""
    shell.masthead("Compare", "How do the cells compare, in any metric and against what they cost?")
    sweeps = _sweeps()
    if not sweeps.value:
        live.region(_nothing_yet, lambda: live.Outline(waiting=True, choices=(bool(_sweeps().value),)))
        return
    chosen = controls(sweeps.value)
    live.region(lambda: _draw(chosen), lambda: _outline(chosen))


def _sweeps() -> Answer[tuple[Sweep, ...]]:
    return line().ask("sweeps", lambda bench: bench.sweep_page(limit=100).items)


def _nothing_yet() -> None:
    answer = _sweeps()
    if answer.value is None:
        shell.no_answer(answer)
        return
    shell.empty("Nothing to compare yet", "Start the comparison of RotRNN and LRU:", "rotbench demo")


def _outline(chosen: Chosen) -> live.Outline:
    fresh = next((one for one in _sweeps().value or () if chosen.sweep and one.id == chosen.sweep.id), None)
    if fresh is not None:
        moving = any(fresh.counts.get(status) for status in MOVING)
    else:
        moving = bool(line().ask(("runs", "moving"), lambda bench: bench.run_page(status=MOVING, limit=1).items).value)
    kinds = tasks_of(chosen.sweep_id)
    return live.Outline(moving, waiting=line().away_since is not None, choices=(kinds, len(_sweeps().value or ())))


def _compared(chosen: Chosen, key: str) -> Answer[MetricComparison]:
    return line().ask(
        ("compared", key, *chosen.question),
        lambda bench: bench.compare_metrics(
            key,
            sweep_id=chosen.sweep_id,
            task=chosen.task,
            cell=list(chosen.cells),
            depth=list(chosen.depths),
            group_by=list(chosen.fields) if key != "tokens_per_s" or chosen.metric.key == key else None,
            max_steps=MOST_STEPS,
        ),
        fresh_s=5.0,
    )


def _runs(chosen: Chosen) -> tuple[Run, ...]:
    def read(bench: RotBench) -> tuple[Run, ...]:
        found = bench.runs(sweep_id=chosen.sweep_id, task=chosen.task, status="succeeded", limit=200)
        return tuple(itertools.islice(found, MOST_RUNS))

    return line().ask(("succeeded", chosen.sweep_id, chosen.task), read, fresh_s=10.0).value or ()


def _along(chosen: Chosen) -> Along:
    if chosen.along == ALONG[0]:
        return Along("training step")
    seconds = comparing.seconds_per_step(_runs(chosen))
    if chosen.along == ALONG[1]:
        return Along("wall time, s", seconds)
    pace = _compared(chosen, "tokens_per_s").value
    return Along("tokens, estimated", comparing.tokens_per_step(pace.groups if pace else (), seconds))


def _draw(chosen: Chosen) -> None:
    shell.away_banner()
    answer = _compared(chosen, chosen.metric.key)
    if answer.value is None:
        shell.no_answer(answer)
        return
    found = answer.value
    warn(list(found.warnings))
    shell.section(
        chosen.metric.title,
        "Line: mean over seeds. Band: its 95% interval (Student's t). A triangle on the floor marks where a seed was "
        "left out because its value is not finite. Colour and marker say the cell, the dash says further settings.\n\n"
        "**Wall time**: steps by the mean pace of the group's succeeded runs, from start to end, evaluation included. "
        "**Tokens**: that time by the mean pace of training in tokens per second, an estimate from above.",
    )
    if not found.groups:
        st.info(
            f"None of these runs has recorded {chosen.metric.title.lower()} yet.", icon=":material/hourglass_empty:"
        )
    else:
        width, along = viewport.columns(most=3), _along(chosen)
        chart(
            lambda mode: metrics_figure(found.groups, chosen.metric, along, mode, columns=width),
            "curves",
            alt=f"{chosen.metric.title} against {along.title}, one panel per depth, one line per cell",
            sheet=lambda: metric_sheet(found.groups),
        )
    parts.differences(chosen)
    parts.frontier(chosen, _runs(chosen))
    parts.beside(chosen)
