"""What would an order cost? Runs, steps, networks and device time, said before the button."""

import streamlit as st

from client import SweepPlan
from client.results import CostEstimate
from dashboard.orders import Order
from dashboard.palette import cell_title
from dashboard.sheets import Sheet
from dashboard.words import NOTHING, duration, plural


def plan_shown(plan: SweepPlan, wanted: Order, new: int) -> None:
    """The count and the cost, as the API has them."""
    facts = [
        ("Runs", f"{plan.total:,}", "Distinct configurations."),
        ("To be trained", f"{new:,}", "Without those that are taken over."),
        ("Updates", NOTHING if plan.cost is None else f"{plan.cost.steps:,}", "Optimiser updates over all new runs."),
        (
            "Device time",
            device_time(plan.cost),
            "By the pace of earlier runs of the same network, task and batch size; not known without one.",
        ),
    ]
    with st.container(horizontal=True, gap="small", key="plan-facts"):
        for label, value, meaning in facts:
            st.metric(label, value, help=meaning, width=165)
    notes = []
    if plan.duplicates and not wanted.reuse:
        notes.append(f"{plural(plan.duplicates, 'run')} with the same configuration and code exist already.")
    if plan.cost is not None and 0 < plan.cost.estimated_runs < plan.cost.runs:
        known = f"{plan.cost.estimated_runs:,} of {plan.cost.runs:,}"
        notes.append(f"The device time is that of the {known} runs whose pace is known; the others come on top.")
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


def device_time(cost: CostEstimate | None) -> str:
    """The device time of the new runs in words: at least so much where the pace of some is not known."""
    if cost is None or cost.device_seconds is None:
        return "none" if cost is not None and not cost.runs else "not known yet"
    return f"{'about' if cost.estimated_runs == cost.runs else 'over'} {duration(cost.device_seconds)}"
