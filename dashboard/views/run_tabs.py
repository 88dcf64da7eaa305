"""What else is there to know about a run? Log, classes, settings, attempts, events, checkpoints, a repetition."""

import io
from functools import partial
from typing import Any

import streamlit as st

from client import Attempt, Checkpoint, LogLine, RotBench, Run
from dashboard import commands, shell, viewport
from dashboard.connection import line
from dashboard.downloads import chart
from dashboard.figures.confusion import class_accuracies, confusion_figure
from dashboard.orders import Order, leaves
from dashboard.run_sheets import checkpoints_sheet, environment_sheet, events_sheet, size
from dashboard.sheets import attempts_sheet, config_sheets
from dashboard.words import clock, plain

LARGEST_DOWNLOAD = 256 * 2**20
"""Larger checkpoints go by the command line, past the memory of the dashboard."""
TAIL = 400
"""How many lines of the log are shown."""
NAMES = ("Log", "Classes", "Configuration", "Attempts", "Events", "Checkpoints", "Environment", "Repeat")


def tabs(run: Run) -> None:
    """The chosen one, whose name stands in the address."""
    draws = (log, classes, configuration, attempts, events, checkpoints, environment, repeat)
    for place, draw in zip(st.tabs(NAMES, key="part", bind="query-params"), draws, strict=True):
        if place.open:
            with place:
                draw(run)


def log(run: Run) -> None:
    """The log's tail; with a search, the lines of it that hold the words."""
    lines = _lines(run)
    if not lines:
        st.info("Nothing was logged yet.", icon=":material/notes:")
        return
    words = st.text_input("Find in the log", key="find", bind="query-params", placeholder="any line", width=330) or ""
    found = [one for one in lines if words.lower() in one.message.lower()]
    zone = shell.zone()
    text = "\n".join(f"{clock(one.at, zone)}  {one.level.upper():<7}  {one.message}" for one in found)
    many = len(found) > 16
    with st.container(height=380 if many else "content", border=False, autoscroll=many):
        shell.code(text or "No line holds these words.")
    hits = f"{len(found):,} of the" if words else "The"
    st.caption(f"{hits} last {len(lines):,} lines, newest at the bottom.")


def _lines(run: Run) -> list[LogLine]:
    """The log's tail; each redraw asks only for what is new."""
    kept: tuple[str | None, list[LogLine]] = st.session_state.get(f"log-{run.id}", (None, []))
    cursor, lines = kept

    def read(bench: RotBench) -> tuple[str | None, list[LogLine]]:
        after, found = cursor, list(lines)
        for _ in range(20):
            new = bench.logs(run.id, after=after, limit=1000)
            found = [*found, *new.items][-TAIL:]
            after = new.next_cursor or after
            if len(new.items) < 1000:
                break
        return after, found

    answer = line().ask(("log", run.id, cursor), read)
    if answer.value is not None:
        st.session_state[f"log-{run.id}"] = answer.value
        return answer.value[1]
    return lines


def classes(run: Run) -> None:
    """What the tested network took each class for."""
    if run.confusion is None:
        st.info(
            "Known once the test split was read, of tasks with up to 35 classes.", icon=":material/hourglass_empty:"
        )
        return
    counts = run.confusion
    tasks = line().ask("tasks", lambda bench: bench.tasks(), fresh_s=60.0).value or ()
    names = next((task.class_names for task in tasks if task.name == run.task), ())
    sheet, width = class_accuracies(counts, names), viewport.columns()
    chart(
        lambda mode: confusion_figure(counts, names, run.cell, mode, columns=width),
        "classes",
        alt="Test examples of each class by the class that the network said",
        sheet=lambda: sheet,
    )
    st.dataframe(
        sheet,
        hide_index=True,
        height="content" if len(counts) <= 12 else 460,
        column_config={"Recognised": st.column_config.NumberColumn(format="percent")},
        alt="Accuracy of each class",
    )


def configuration(run: Run) -> None:
    """Every setting."""
    st.caption(f"Complete, defaults included. Runs with equal configurations share the hash {run.config_hash[:12]}.")
    for place, (part, sheet) in zip(_quarters(), config_sheets(run.config).items(), strict=False):
        with place:
            st.markdown(f"**{plain(part)}**")
            st.dataframe(
                sheet,
                hide_index=True,
                height="content",
                column_config={
                    "Setting": st.column_config.TextColumn(width=180),
                    "Value": st.column_config.TextColumn(),
                },
                alt=f"{part} settings",
            )


def _quarters() -> list[Any]:
    return [*st.columns(2, gap="medium"), *st.columns(2, gap="medium")]


def _tries(run: Run) -> tuple[Attempt, ...]:
    return line().ask(("attempts", run.id), lambda bench: bench.attempts(run.id)).value or ()


def attempts(run: Run) -> None:
    """Who tried, and how it ended."""
    tries = _tries(run)
    if not tries:
        st.info("No worker has taken this run yet.", icon=":material/hourglass_empty:")
        return
    st.dataframe(attempts_sheet(tries, shell.zone()), hide_index=True, height="content", alt="Attempts at this run")


def events(run: Run) -> None:
    """What happened to it."""
    found = line().ask(("history", run.id), lambda bench: bench.history(run.id)).value
    if not found:
        st.info("Nothing has happened to this run yet.", icon=":material/hourglass_empty:")
        return
    st.dataframe(
        events_sheet(found, shell.zone()),
        hide_index=True,
        height="content" if len(found) <= 14 else 520,
        column_config={"In words": st.column_config.TextColumn(width=560)},
        alt="What happened to this run, first to last",
    )


def checkpoints(run: Run) -> None:
    """What a resume could go on from."""
    found = line().ask(("checkpoints", run.id), lambda bench: bench.checkpoints(run.id)).value
    if not found:
        st.info("No checkpoint is kept.", icon=":material/save:")
        return
    st.dataframe(
        checkpoints_sheet(found, shell.zone()),
        hide_index=True,
        height="content",
        column_config={"Path": st.column_config.TextColumn(width=420)},
        alt="Checkpoints that are kept",
    )
    st.caption("Paths are those of the artifact store. The last two are kept; each was complete when it was recorded.")
    with st.container(horizontal=True, gap="small"):
        for one in found:
            if one.size_bytes <= LARGEST_DOWNLOAD:
                st.download_button(
                    f"Step {one.step:,}" + (f", attempt {one.attempt}" if run.attempt > 1 else ""),
                    partial(_file, run.id, one),
                    f"run-{run.id[:8]}-step-{one.step}.pt",
                    "application/octet-stream",
                    key=f"checkpoint-{one.attempt}-{one.step}",
                    icon=":material/download:",
                    on_click="ignore",
                    help=f"{size(one.size_bytes)}; its sum is checked on the way.",
                )
    shell.code(f"rotbench checkpoint {run.id[:8]} --step {found[0].step}")


def _file(run_id: str, chosen: Checkpoint) -> bytes:
    sink = io.BytesIO()
    line().tell(lambda bench: bench.checkpoint(run_id, chosen.step, sink, attempt=chosen.attempt))
    return sink.getvalue()


def environment(run: Run) -> None:
    """Where it trained."""
    sheet = environment_sheet(_tries(run))
    if not sheet:
        st.info("No attempt has said yet where it trains.", icon=":material/hourglass_empty:")
        return
    st.dataframe(
        sheet, hide_index=True, height="content", alt="Versions, device and code of each attempt", key="environment"
    )


def repeat(run: Run) -> None:
    """The same run again: as a command, over REST, or changed on the page of the form."""
    wanted = Order(None, run.config, name=run.name, priority=None if run.priority == "normal" else run.priority)
    st.caption("Complete, so that it stays the same run when defaults change.")
    if st.button("Change it and submit", icon=":material/edit:", key="change"):
        st.switch_page(st.session_state["pages"]["submit"], query_params=_as_address(run))
    st.markdown("**Command line**")
    shell.code(commands.repeated(wanted))
    st.markdown("**curl**")
    shell.code(commands.curl(wanted))


def _as_address(run: Run) -> dict[str, str]:
    """The form's fields that make this run; its address names cells and tasks by their titles."""
    cell = run.config.get("model", {}).get("cell", {})
    fields = {name: _text(value) for name, value in leaves(run.config) if value is not None and name != "task.name"}
    options = {f"{cell.get('name')}.{name}": _text(value) for name, value in cell.items() if name != "name"}
    lists = line().ask("lists", lambda bench: (bench.recipes(), bench.models(), bench.tasks()), fresh_s=60.0).value
    _, models, tasks = lists or ((), (), ())
    titles = {model.name: model.title for model in models} | {task.name: task.title for task in tasks}
    named = {"cells": titles.get(cell.get("name")), "task": titles.get(run.task)}
    return {name: title for name, title in named.items() if title} | options | fields


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
