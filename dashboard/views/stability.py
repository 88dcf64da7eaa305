"""Does the hidden state keep its length while the network learns? The comparison of the cells, with its numbers."""

from client import Sweep
from dashboard import live, shell
from dashboard.connection import Answer, line
from dashboard.views import stability_parts as parts
from dashboard.views.stability_choices import Chosen, controls, norms
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


def _moving(sweep: Sweep | None) -> bool:
    if sweep is None:
        found = line().ask(("runs", "moving"), lambda bench: bench.run_page(status=parts.MOVING, limit=1).items)
        return bool(found.value)
    return any(sweep.counts.get(status) for status in parts.MOVING)


def _fresh(sweep: Sweep | None) -> Sweep | None:
    """The chosen sweep as it stands now."""
    return next((one for one in _sweeps().value or () if sweep and one.id == sweep.id), sweep)


def _outline(chosen: Chosen) -> live.Outline:
    moving = _moving(_fresh(chosen.sweep))
    found = norms(chosen.sweep_id, chosen.statistic).value
    kinds = sorted({(group.task, group.depth) for group in found.groups}) if found else []
    return live.Outline(
        moving, waiting=line().away_since is not None, choices=(*kinds, *(s.id for s in _sweeps().value or ()))
    )


def _draw(chosen: Chosen) -> None:
    shell.away_banner()
    sweep = _fresh(chosen.sweep)
    if sweep is not None:
        parts.progress(sweep)
    compared = norms(chosen.sweep_id, chosen.statistic)
    if compared.value is None:
        shell.no_answer(compared)
        return
    groups = [group for group in compared.value.groups if chosen.holds(task=group.task, depth=group.depth)]
    if not groups:
        parts.no_norms_yet(sweep)
        return
    numbers = line().ask(
        ("stability", chosen.sweep_id, chosen.task),
        lambda bench: bench.stability(sweep_id=chosen.sweep_id, task=chosen.task),
        fresh_s=2.0,
    )
    if numbers.value is not None:
        parts.claim(numbers.value)
    elif numbers.problem is not None:
        shell.refusal(numbers.problem)
    parts.warn([*compared.value.warnings, *(numbers.value.warnings if numbers.value else ())])
    parts.figures(chosen, groups)
    profiles(chosen)
    survival(chosen)
    if numbers.value is not None and numbers.value.rows:
        parts.numbers(numbers.value)
