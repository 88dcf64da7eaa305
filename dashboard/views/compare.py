"""How do cells compare? Any metric over seeds along step, time or tokens; accuracy against cost; reported results."""

from dataclasses import replace

import streamlit as st

from client import Sweep
from client.seeds import MetricComparison
from dashboard import comparing, live, questions, shell, viewport
from dashboard.connection import Answer, line
from dashboard.downloads import chart
from dashboard.figures.metrics import Along, metric_sheet, metrics_figure
from dashboard.questions import Question
from dashboard.views import compare_parts as parts
from dashboard.views.compare_choices import ALONG, Chosen, controls, succeeded, tasks_of
from dashboard.views.stability_parts import warn

MOST_STEPS = 160
"""At most so many steps of each group; its statistics are of all points at each."""


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
    now = _fresh(chosen).sweep
    moving = questions.moves(now) if now else questions.anything_moves()
    kinds = tasks_of(now)
    return live.Outline(moving, waiting=line().away_since is not None, choices=(kinds, len(_sweeps().value or ())))


def _fresh(chosen: Chosen) -> Chosen:
    """The choice with its sweep as it stands now."""
    was = chosen.sweep
    return replace(chosen, sweep=next((one for one in _sweeps().value or () if was and one.id == was.id), was))


def _compared(chosen: Chosen, key: str) -> Question[MetricComparison]:
    return questions.about(
        chosen.sweep,
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


def _along(chosen: Chosen) -> Along:
    if chosen.along == ALONG[0]:
        return Along("training step")
    seconds = comparing.seconds_per_step(succeeded(chosen).ask().value or ())
    if chosen.along == ALONG[1]:
        return Along("wall time, s", seconds)
    pace = _compared(chosen, "tokens_per_s").ask().value
    return Along("tokens, estimated", comparing.tokens_per_step(pace.groups if pace else (), seconds))


def _draw(chosen: Chosen) -> None:
    shell.away_banner()
    chosen = _fresh(chosen)
    wanted = _compared(chosen, chosen.metric.key)
    for question in (wanted, parts.differing(chosen), questions.stability(chosen.sweep, chosen.task)):
        question.ahead()
    answer = wanted.ask()
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
        _draw_below(chosen)
        return
    width, along = viewport.columns(most=3), _along(chosen)
    chart(
        lambda mode: metrics_figure(found.groups, chosen.metric, along, mode, columns=width),
        "curves",
        alt=f"{chosen.metric.title} against {along.title}, one panel per depth, one line per cell",
        sheet=lambda: metric_sheet(found.groups),
    )
    live.below(lambda: _draw_below(chosen), "compare-below")


def _draw_below(chosen: Chosen) -> None:
    parts.differences(chosen)
    parts.frontier(chosen)
    parts.beside(chosen)
    succeeded(chosen).ahead()
