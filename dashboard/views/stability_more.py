"""How long is the state along the sequence, and how many seeds are sound? Two parts of the stability page."""

import streamlit as st

from client import ProfileGroup, Run
from dashboard import questions, shell, viewport
from dashboard.connection import line
from dashboard.downloads import chart
from dashboard.figures.profiles import Decays, profiles_figure
from dashboard.figures.survival import survival_figure, survival_sheet, survival_words
from dashboard.series_sheets import profiles_sheet
from dashboard.views.stability_choices import Chosen
from dashboard.views.stability_choices import profiles as along

MEANING = (
    "The same probe batch, place by place, at up to 64 places: the mean over the batch, then the geometric mean over "
    "seeds with the 95% interval of its logarithm (Student's t). Dotted: before training. For white input and a fresh "
    "network RotRNN's theory says 1 at every place where the first step is exact, and sqrt(1 - decay^2t) where it is "
    "scaled as in the authors' code; the grey shape holds that curve for every decay that the cell begins with. It "
    "speaks of the norm of one head: choose **Per head** to compare."
)

SURVIVAL = (
    "The share of runs that are neither diverged (a value is not finite) nor stuck (late in training the validation "
    "loss is still that of guessing), by Kaplan and Meier, with Wilson's 95% interval. A stuck run is lost at its last "
    "step; one that still trains counts up to its present step."
)


def profiles(chosen: Chosen) -> None:
    """The figure; nothing where no profile was kept."""
    after = _kept(chosen, None)
    if not after:
        return
    before = [group for group in _kept(chosen, 0) if min(group.steps) < max(_last(after, group))]
    decays = _decays(after) if chosen.statistic.name == "per_head" else {}
    width = viewport.columns()
    shell.section("Along the sequence", MEANING)
    chart(
        lambda mode: profiles_figure(before, after, chosen.statistic, mode, columns=width, decays=decays),
        "profiles",
        alt=f"{chosen.statistic.axis} along the sequence, one panel per layer, before and after training",
        sheet=lambda: profiles_sheet([*before, *after]),
    )


def survival(chosen: Chosen) -> None:
    """Which seeds were lost; the figure where one was."""
    there = questions.lives(chosen.sweep).ask().value or ()
    groups = [group for group in there if chosen.holds(task=group.task, depth=group.depth)]
    if not groups:
        return
    shell.section("Survival of the seeds", SURVIVAL)
    st.markdown(survival_words(groups))
    if not any(group.diverged or group.stuck for group in groups):
        return
    width = viewport.columns(most=3)
    chart(
        lambda mode: survival_figure(groups, mode, columns=width),
        "survival",
        alt="Share of seeds neither diverged nor stuck against training step, one panel per depth",
        sheet=lambda: survival_sheet(groups),
    )


def _kept(chosen: Chosen, step: int | None) -> list[ProfileGroup]:
    return [group for group in along(chosen, step).ask().value or () if len(group.positions) > 1]


def _last(after: list[ProfileGroup], of: ProfileGroup) -> tuple[int, ...]:
    same = (of.task, of.cell, of.depth, of.layer)
    return next((g.steps for g in after if (g.task, g.cell, g.depth, g.layer) == same), (0,))


def _run(run_id: str) -> Run | None:
    return line().ask(("run", run_id), lambda bench: bench.run(run_id), fresh_s=60.0).value


def _decays(groups: list[ProfileGroup]) -> Decays:
    """The decays that cells with the authors' first step begin with, from the configuration of one of their runs."""
    found: dict[str, tuple[float, float]] = {}
    for group in groups:
        if group.cell not in found and group.cell.startswith("rotrnn-authors"):
            run = _run(group.run_ids[0])
            if run is not None:
                cell = run.config["model"]["cell"]
                found[group.cell] = (float(cell["decay_min"]), float(cell["decay_max"]))
    return found
