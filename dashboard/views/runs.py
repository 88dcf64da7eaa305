"""What has been trained, and how far is it? The list of runs with filters, progress and what can be done."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from client import RotBench, Run, RunPage, Sweep
from dashboard import choices, deeds, live, questions, shell
from dashboard.connection import Answer, line
from dashboard.palette import STATUSES, status_chip, status_look
from dashboard.questions import Question
from dashboard.sheets import runs_sheet
from dashboard.words import plural

PAGE = 100
_SHOWN = "runs-shown"
_LIMIT = "runs-limit"


@shell.guarded
def page() -> None:
    """The list."""
    shell.masthead("Runs", "What has been trained, and how far is it?")
    deeds.conversation()
    _sweeps().ahead()
    everything = _newest()
    if everything.value is None or not everything.value.items:
        live.region(lambda: _nothing_yet(everything), lambda: live.Outline(waiting=True, choices=(_any(),)))
        return
    filters = _filters(everything.value.items)
    live.region(lambda: _draw(filters), lambda: _outline(filters))


def _newest() -> Answer[RunPage]:
    """The runs whose cells, depths and seeds the filters offer."""
    return line().ask(("runs", "newest"), lambda bench: bench.run_page(limit=200), fresh_s=5.0)


def _sweeps() -> Question[tuple[Sweep, ...]]:
    return Question("sweeps", lambda bench: bench.sweep_page(limit=100).items, 0.8)


def _any() -> bool:
    found = line().ask(("runs", "any"), lambda bench: bench.run_page(limit=1).items)
    return bool(found.value)


def _nothing_yet(answer: Answer[RunPage]) -> None:
    if answer.value is None:
        shell.no_answer(answer)
        return
    shell.empty(
        "No runs yet",
        "Start the comparison of RotRNN and LRU, or submit one run of your own:",
        "rotbench demo\nrotbench submit listops-short/rotrnn",
    )


Filters = dict[str, Any]


def _filters(newest: Sequence[Run]) -> Filters:
    """The row of filters, each bound to the address; what is not chosen is not filtered."""
    sweeps = _sweeps().ask().value or ()
    labels = {choices.sweep_label(sweep): sweep.id for sweep in sweeps}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        status = st.multiselect(
            "Status",
            list(STATUSES),
            key="status",
            bind="query-params",
            format_func=lambda name: status_look(name).word,
            placeholder="any",
            width=168,
        )
        cell = choices.cells("Cell", newest, placeholder="any", width=168)
        depth = choices.depths("Depth", newest, placeholder="any", width=110)
        seed = st.multiselect(
            "Seed",
            [str(seed) for seed in sorted({run.seed for run in newest})],
            key="seed",
            bind="query-params",
            placeholder="any",
            width=110,
        )
        sweep = st.selectbox(
            "Comparison",
            list(labels),
            index=None,
            key="of",
            bind="query-params",
            placeholder="any",
            width=250,
        )
    return {
        "status": status,
        "cell": cell,
        "depth": depth,
        "seed": [int(one) for one in seed],
        "sweep_id": labels.get(sweep or ""),
    }


def _listed(filters: Filters) -> Answer[RunPage]:
    limit = int(st.session_state.get(_LIMIT, PAGE))
    question = ("runs", limit, *(str(value) for value in filters.values()))
    return line().ask(question, lambda bench: _read(bench, filters, limit))


def _read(bench: RotBench, filters: Filters, limit: int) -> RunPage:
    """What trains now, then the newest; a filter by status asks for the newest alone."""
    first: tuple[Run, ...] = ()
    if not filters["status"]:
        first = bench.run_page(**(filters | {"status": ["running", "cancelling"]}), limit=PAGE).items
    items: list[Run] = []
    cursor: str | None = None
    while True:
        found = bench.run_page(**filters, limit=min(200, limit - len(items)), cursor=cursor)
        items += found.items
        cursor = found.next_cursor
        if cursor is None or len(items) >= limit:
            break
    ahead = {run.id for run in first}
    return RunPage((*first, *(run for run in items if run.id not in ahead)), cursor)


def _outline(filters: Filters) -> live.Outline:
    found = _listed(filters).value
    cells = tuple(sorted({run.cell for run in found.items})) if found else ()
    return live.Outline(questions.anything_moves(), waiting=line().away_since is not None, choices=cells)


def _draw(filters: Filters) -> None:
    shell.away_banner()
    answer = _listed(filters)
    if answer.value is None:
        shell.no_answer(answer)
        return
    runs = answer.value.items
    if not runs:
        st.info("No run passes these filters. Take one away to see more.", icon=":material/filter_alt_off:")
        return
    chosen = _table(runs)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if chosen:
            st.markdown(f"**{plural(len(chosen), 'run')} chosen**", width="content")
            if len(chosen) == 1 and st.button(
                "Open", icon=":material/open_in_full:", key="open-chosen", type="primary"
            ):
                _open(chosen[0])
            deeds.buttons(chosen, "chosen")
        else:
            more = " and more" if answer.value.next_cursor else ""
            st.markdown(
                f":gray[{plural(len(runs), 'run')}{more}: what trains now, then the newest. "
                "Tick runs to pause, resume, cancel or delete them.]"
            )
    if answer.value.next_cursor and st.button(f"Show {PAGE} more", icon=":material/expand_more:", key="more"):
        st.session_state[_LIMIT] = int(st.session_state.get(_LIMIT, PAGE)) + PAGE
        st.rerun()


def _table(runs: Sequence[Run]) -> list[Run]:
    """Draw the list; returns the chosen runs.

    The table's key changes with its order, so that a tick never slides to another run when a new one arrives.
    """
    ids = tuple(run.id for run in runs)
    opened = st.session_state.get("run-open")
    if opened is not None and st.session_state.get(_SHOWN):
        _open(next(run for run in runs if run.id == st.session_state[_SHOWN][opened["row"]]))
    st.session_state[_SHOWN] = ids
    picked = st.dataframe(
        {"Open": [":material/open_in_new:"] * len(runs), **runs_sheet(runs)},
        key=f"runs-{hash(ids)}",
        hide_index=True,
        height="content" if len(runs) <= 25 else 940,
        on_select="rerun",
        selection_mode="multi-row",
        placeholder="",
        column_config=_columns(runs),
        column_order=["Open", *runs_sheet(())],
        alt="Runs, newest first",
    )
    return [runs[row] for row in picked.selection.rows if row < len(runs)]


def _columns(runs: Sequence[Run]) -> dict[str, Any]:
    """Widths, formats and help of the list."""
    column, mode = st.column_config, shell.mode()
    return {
        "Open": column.ButtonColumn("", width=44, pinned=True, type="tertiary", key="run-open"),
        "Status": column.MultiselectColumn(
            width=112,
            pinned=True,
            options=list(STATUSES),
            color=[status_chip(status, mode) for status in STATUSES],
            format_func=lambda name: f"{status_look(name).sign} {status_look(name).word}",
            help="\n\n".join(f"**{look.word}**: {look.meaning}." for look in STATUSES.values()),
        ),
        "Run": column.TextColumn(width=185),
        "Cell": shell.cell_column({run.cell for run in runs}),
        "Depth": column.NumberColumn(width=58, help="Number of layers."),
        "Seed": column.NumberColumn(width=52, format="%d"),
        "Progress": column.ProgressColumn(width=115, min_value=0, max_value=100, format="%.0f %%"),
        "Step": column.TextColumn(width=98, help="Optimiser updates, done / planned.", alignment="right"),
        "Accuracy": column.NumberColumn(
            width=78, format="%.1f %%", help="On the test split; on the validation split until that is measured."
        ),
        "Time left": column.TextColumn(width=82, help="From the pace of the present attempt."),
        "Started": column.DatetimeColumn(width=104, format="D MMM HH:mm", timezone=st.context.timezone or "UTC"),
        "Why": column.TextColumn(width=270),
    }


def _open(run: Run) -> None:
    st.switch_page(st.session_state["pages"]["run"], query_params={"id": run.id})
