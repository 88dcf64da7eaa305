"""Does the hidden state keep its length while the network learns? The comparison of the cells, with its numbers."""

from dataclasses import replace

import streamlit as st

from client import HiddenNormComparison, Stability, Sweep
from dashboard import live, questions, shell
from dashboard.connection import Answer, line
from dashboard.views import stability_parts as parts
from dashboard.views.stability_choices import Chosen, controls, norms
from dashboard.views.stability_choices import profiles as along
from dashboard.views.stability_more import profiles, survival


@shell.guarded
def page() -> None:
    """The home page."""
    shell.masthead("Stability", "Does the hidden state keep its length while the network learns?")
    sweeps = _sweeps()
    if sweeps.value is None or not _anything(sweeps.value):
        live.region(_nothing_yet, lambda: live.Outline(waiting=True, choices=(_anything(_sweeps().value or ()),)))
        return
    chosen = controls(sweeps.value)
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


def _fresh(chosen: Chosen) -> Chosen:
    """The choice with its sweep as it stands now."""
    was = chosen.sweep
    return replace(chosen, sweep=next((one for one in _sweeps().value or () if was and one.id == was.id), was))


def _outline(chosen: Chosen) -> live.Outline:
    now = _fresh(chosen)
    kinds = sorted({(group.task, group.depth) for group in questions.lives(now.sweep).ask().value or ()})
    return live.Outline(
        questions.moves(now.sweep) if now.sweep else questions.anything_moves(),
        waiting=line().away_since is not None,
        choices=(*kinds, *(sweep.id for sweep in _sweeps().value or ())),
    )


def _draw(chosen: Chosen) -> None:
    shell.away_banner()
    chosen = _fresh(chosen)
    if chosen.sweep is not None:
        parts.progress(chosen.sweep)
    numbers_wanted = questions.stability(chosen.sweep, chosen.task)
    for question in (norms(chosen), numbers_wanted, along(chosen, None), along(chosen, 0)):
        question.ahead()
    verdict = st.container()
    answer = norms(chosen).ask()
    if answer.value is None:
        shell.no_answer(answer)
        return
    compared = answer.value
    if not compared.groups:
        parts.no_norms_yet(chosen.sweep)
        return
    parts.norms_while_training(chosen, compared)
    numbers = numbers_wanted.ask()
    with verdict:
        if numbers.value is not None:
            parts.claim(numbers.value)
        elif numbers.problem is not None:
            shell.refusal(numbers.problem)
        parts.warn([*compared.warnings, *(numbers.value.warnings if numbers.value else ())])
    live.below(lambda: _draw_below(chosen, compared, numbers.value), "stability-below")


def _draw_below(chosen: Chosen, compared: HiddenNormComparison, numbers: Stability | None) -> None:
    parts.growth(compared.groups)
    profiles(chosen)
    survival(chosen)
    if numbers is not None and numbers.rows:
        parts.numbers(numbers)
