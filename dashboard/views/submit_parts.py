"""What would an order cost? Runs, steps, networks and device time, said before the button."""

from typing import Any

import streamlit as st

from client import Run, SweepPlan
from dashboard.connection import line
from dashboard.grids import cost
from dashboard.orders import Order
from dashboard.palette import cell_title
from dashboard.sheets import Sheet
from dashboard.words import NOTHING, duration, plural


def plan_shown(plan: SweepPlan, wanted: Order, new: int, seconds: float | None) -> None:
    """The count and the cost."""
    steps = _steps(plan, wanted)
    facts = [
        ("Runs", f"{plan.total:,}", "Distinct configurations."),
        ("To be trained", f"{new:,}", "Without those that are taken over."),
        ("Updates", NOTHING if steps is None else f"{steps * new:,}", "Optimiser updates over all runs."),
        (
            "Device time",
            f"about {duration(seconds)}" if seconds is not None else "not known yet",
            "By the pace of earlier runs of the same task, cell and depth; not known without one.",
        ),
    ]
    with st.container(horizontal=True, gap="small", key="plan-facts"):
        for label, value, meaning in facts:
            st.metric(label, value, help=meaning, width=165)
    notes = []
    if plan.duplicates and not wanted.reuse:
        notes.append(f"{plural(plan.duplicates, 'run')} with the same configuration and code exist already.")
    if plan.merged:
        notes.append(f"{plural(plan.merged, 'combination')} equal an earlier one and make no run of their own.")
    if notes:
        st.caption(" ".join(notes))
    if plan.sizes:
        with st.expander(f"{plural(len(plan.sizes), 'network')}: parameters, state and operations"):
            st.dataframe(sizes_sheet(plan), hide_index=True, height="content", alt="Networks of this order")


def sizes_sheet(plan: SweepPlan) -> Sheet:
    """One line per network that the order would train."""
    return {
        "Cell": [cell_title(size.cell) for size in plan.sizes],
        "Task": [size.task for size in plan.sizes],
        "Depth": [size.depth for size in plan.sizes],
        "d model": [size.d_model for size in plan.sizes],
        "d state": [size.d_state for size in plan.sizes],
        "Parameters": [f"{size.parameters:,}" for size in plan.sizes],
        "State": [f"{size.state_size:,}" for size in plan.sizes],
        "Operations per token": [f"{size.flops_per_token:,}" for size in plan.sizes],
    }


def seconds_wanted(plan: SweepPlan, new: int) -> float | None:
    """Device time of the new runs, by the pace of the newest that succeeded with the same task, cell and depth."""
    each = []
    for size in plan.sizes:
        found = _alike(size.task, size.cell, size.depth)
        spent = sum(cost([run], run.finished_at).spent_s for run in found if run.finished_at)
        steps = sum(run.step for run in found)
        if not steps:
            return None
        each.append(spent / steps)
    preview = plan.configs_preview[0] if plan.configs_preview else {}
    planned = preview.get("training", {}).get("steps")
    return new * planned * sum(each) / len(each) if each and planned else None


def _alike(task: str, cell: str, depth: int) -> tuple[Run, ...]:
    question = ("runs alike", task, cell, depth)
    return (
        line()
        .ask(
            question,
            lambda bench: bench.run_page(status="succeeded", task=task, cell=cell, depth=depth, limit=10).items,
            fresh_s=30.0,
        )
        .value
        or ()
    )


def _steps(plan: SweepPlan, wanted: Order) -> int | None:
    """Steps of each run, None where the grid varies them."""
    if "training.steps" in wanted.grid or not plan.configs_preview:
        return None
    training: dict[str, Any] = plan.configs_preview[0].get("training", {})
    return training.get("steps")
