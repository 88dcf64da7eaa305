"""How many runs end, and how? Counts per stretch of time, stacked by state."""

from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo

import plotly.graph_objects as go

from client import Run
from dashboard.figures.axes import count_axis
from dashboard.figures.canvas import Canvas
from dashboard.palette import BACKGROUND, STATUS_COLOURS, Mode, blend, status_look
from dashboard.sheets import Sheet
from dashboard.words import plural

STRETCHES = 24
ORDER = ("succeeded", "diverged", "failed", "cancelled")
SPANS = {"6 h": 6, "24 h": 24, "7 d": 168}


def ended(runs: Sequence[Run], now: datetime, hours: int) -> dict[str, list[int]]:
    """By state, how many runs ended in each of 24 equal stretches up to now, the oldest first."""
    counts = {status: [0] * STRETCHES for status in ORDER}
    each = timedelta(hours=hours) / STRETCHES
    for run in runs:
        if run.finished_at is not None and run.status in counts:
            ago = int((now - run.finished_at) / each)
            if 0 <= ago < STRETCHES:
                counts[run.status][STRETCHES - 1 - ago] += 1
    return counts


def pace_figure(counts: dict[str, list[int]], now: datetime, hours: int, zone: tzinfo, mode: Mode) -> go.Figure:
    """Stacked bars; states without a run are left out."""
    begins = _begins(now, hours)
    most = max(1, *(sum(column) for column in zip(*counts.values(), strict=True)))
    canvas = Canvas(mode, [150], bottom=48, unified=False)
    labels = [f"{begin.astimezone(zone):{'%H:%M' if hours <= 24 else '%d %b %H:%M'}}" for begin in begins]
    panel = canvas.panel(
        0,
        0,
        x={
            "range": [-0.6, STRETCHES - 0.4],
            "tickmode": "array",
            "tickvals": list(range(0, STRETCHES, 6)),
            "ticktext": labels[::6],
            "showgrid": False,
            "title_text": "time of their end",
        },
        y=count_axis(0, most * 1.08) | {"title_text": "runs"},
    )
    for status in ORDER:
        if any(counts[status]):
            look = status_look(status)
            canvas.add(
                panel,
                {
                    "type": "bar",
                    "x": list(range(STRETCHES)),
                    "y": counts[status],
                    "name": f"{look.sign} {look.word.lower()}",
                    "marker": {
                        "color": blend(BACKGROUND[mode], STATUS_COLOURS[mode][look.colour], 0.75),
                        "line": {"width": 1, "color": BACKGROUND[mode]},
                    },
                    "text": [
                        f"{label}: {plural(count, 'run')} {look.word.lower()}"
                        for label, count in zip(labels, counts[status], strict=True)
                    ],
                    "textposition": "none",
                    "hovertemplate": "%{text}<extra></extra>",
                },
            )
    return canvas.figure(barmode="stack", bargap=0.15)


def pace_sheet(counts: dict[str, list[int]], now: datetime, hours: int) -> Sheet:
    """One line per stretch, one column per state."""
    return {"begin": [begin.isoformat() for begin in _begins(now, hours)], **counts}


def _begins(now: datetime, hours: int) -> list[datetime]:
    each = timedelta(hours=hours) / STRETCHES
    return [now - each * (STRETCHES - at) for at in range(STRETCHES)]
