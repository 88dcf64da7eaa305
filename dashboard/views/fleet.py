"""Who trains, how fast, and what waits for what? Workers by their last beat, the queue, and what ended."""

import itertools
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from client import RotBench, Run, Worker
from dashboard import choices, live, shell
from dashboard.connection import Answer, line
from dashboard.downloads import chart
from dashboard.figures.pace import SPANS, ended, pace_figure, pace_sheet
from dashboard.fleet import in_queue_order, queue_sheet, throughput, workers_sheet
from dashboard.palette import STATUS_COLOURS
from dashboard.questions import Question
from dashboard.words import NOTHING, number, plural

MOST = 400
"""At most so many waiting runs are listed, and so many ended ones counted."""
ENDED = ("succeeded", "diverged", "failed", "cancelled")
STATES = {
    "busy": ("\u25b8 Busy", "trains a run", "violet"),
    "idle": ("\u25cb Idle", "waits for a run", "green"),
    "unknown": ("? Unknown", "has not been heard of for longer than a lease: gone, or cut off", "yellow"),
}


@shell.guarded
def page() -> None:
    """The page of workers."""
    shell.masthead("Fleet", "Who trains, how fast, and what waits for what?")
    spans = list(SPANS)
    choices.begin("span", spans[1], spans)
    live.region(_draw, _outline)


def _workers() -> Answer[tuple[Worker, ...]]:
    return line().ask("workers", lambda bench: bench.workers())


def _runs(*status: str, fresh_s: float = 2.0) -> Question[tuple[Run, ...]]:
    def read(bench: RotBench) -> tuple[Run, ...]:
        return tuple(itertools.islice(bench.runs(status=list(status), limit=200), MOST))

    return Question(("runs", "fleet", *status), read, fresh_s)


def _outline() -> live.Outline:
    return live.Outline(bool(_workers().value), waiting=not _workers().value or line().away_since is not None)


def _draw() -> None:
    shell.away_banner()
    workers = _workers()
    if workers.value is None:
        shell.no_answer(workers)
        return
    now = datetime.now(UTC)
    for question in (_runs(*ENDED, fresh_s=10.0), _runs("queued"), _runs("paused")):
        question.ahead()
    running = _runs("running", "cancelling").ask().value or ()
    queued = in_queue_order(_runs("queued").ask().value or ())
    paused = _runs("paused").ask().value or ()
    _facts(workers.value, running, queued)
    if workers.value:
        _table_of_workers(workers.value, running)
    else:
        shell.empty(
            "No worker has been heard of",
            "Runs wait in the queue until one is there. The local stack has one per device:",
            "rotbench up",
        )
    _table_of_queue([*queued, *paused], workers.value, now)
    _pace(now)


def _facts(workers: tuple[Worker, ...], running: tuple[Run, ...], queued: list[Run]) -> None:
    count = {state: sum(worker.state == state for worker in workers) for state in STATES}
    pace = throughput(running)
    facts = [
        ("Busy", f"{count['busy']:,} / {len(workers) - count['unknown']:,}", "Workers that train, of those alive."),
        ("Unknown", f"{count['unknown']:,}", "Workers whose last beat is older than a lease; others take their runs."),
        ("Training", f"{len(running):,}", "Runs on a worker now."),
        ("Waiting", f"{len(queued):,}" + ("+" if len(queued) >= MOST else ""), "Runs in the queue."),
        (
            "Steps per second",
            NOTHING if pace is None else number(pace),
            "Optimiser updates over all runs that train, by the pace of their present attempts.",
        ),
    ]
    with st.container(horizontal=True, gap="small", key="facts"):
        for label, value, meaning in facts:
            st.metric(label, value, help=meaning, width=165)


def _table_of_workers(workers: tuple[Worker, ...], running: tuple[Run, ...]) -> None:
    shell.section("Workers", "By their last beat, whose age the database's clock measures.")
    column: Any = st.column_config
    mode = shell.mode()
    st.dataframe(
        workers_sheet(workers, running),
        hide_index=True,
        height="content" if len(workers) <= 25 else 900,
        column_config={
            "State": column.MultiselectColumn(
                width=112,
                pinned=True,
                options=list(STATES),
                color=[STATUS_COLOURS["light"][colour] for _, _, colour in STATES.values()],
                format_func=lambda name: STATES.get(name, (name, "", ""))[0],
                help="\n\n".join(f"**{word}**: {meaning}." for word, meaning, _ in STATES.values()),
            ),
            "Progress": column.ProgressColumn(width=115, min_value=0, max_value=100, format="%.0f %%"),
            "Steps per second": column.NumberColumn(width=120, format="%.3g"),
            "Memory": column.TextColumn(
                width=92, alignment="right", help="Held by the worker and its trainer, shared pages counted in each."
            ),
            "Host has left": column.TextColumn(width=150, alignment="right", help="Memory of its host."),
            "Data": column.TextColumn(
                width=220, help="Tasks whose published data are there; generated ones need none."
            ),
            "Since": column.DatetimeColumn(width=110, format="D MMM HH:mm", timezone=st.context.timezone or "UTC"),
        },
        key=f"workers-{mode}",
        placeholder="",
        alt="Workers with state, device, run and last beat",
    )


def _table_of_queue(waiting: list[Run], workers: tuple[Worker, ...], now: datetime) -> None:
    shell.section("What waits, and for what", "In the order in which workers take them: by priority, then by age.")
    if not waiting:
        st.info("Nothing waits.", icon=":material/check_circle:")
        return
    st.dataframe(
        queue_sheet(waiting, workers, now),
        hide_index=True,
        height="content" if len(waiting) <= 12 else 460,
        column_config={
            "Run": st.column_config.TextColumn(width=200),
            "Cell": shell.cell_column({run.cell for run in waiting}),
            "Depth": st.column_config.NumberColumn(width=60),
            "Seed": st.column_config.NumberColumn(width=60, format="%d"),
            "For": st.column_config.TextColumn(width=420),
        },
        alt="Runs that wait, with the reason",
    )


def _pace(now: datetime) -> None:
    shell.section("What ended", f"Runs by the time and the state of their end, of the newest {MOST:,} that have ended.")
    picked = st.segmented_control(
        "Span", list(SPANS), key="span", bind="query-params", required=True, label_visibility="collapsed"
    )
    hours = SPANS.get(picked or "", 24)
    over = _runs(*ENDED, fresh_s=10.0).ask().value or ()
    counts = ended(over, now, hours)
    total = sum(map(sum, counts.values()))
    if not total:
        st.info(f"No run has ended in the last {picked}.", icon=":material/hourglass_empty:")
        return
    zone = shell.zone()
    st.caption(f"{plural(total, 'run')} in the last {picked}, {total / hours:.2g} per hour.")
    chart(
        lambda mode: pace_figure(counts, now, hours, zone, mode),
        "pace",
        alt=f"Runs that ended in the last {picked}, by state",
        sheet=lambda: pace_sheet(counts, now, hours),
    )
