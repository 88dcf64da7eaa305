"""How do results become CSV? One row per thing that was measured; floats come back bit for bit, NaN by name."""

import csv
import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TextIO

from client.results import HiddenNormTrace, MetricSeries, Run
from client.stability import Stability
from client.wire import plain

COST = ("state_size", "flops_per_token", "stuck")
RUN_FIELDS = (
    "id",
    "name",
    "sweep_id",
    "task",
    "cell",
    "depth",
    "seed",
    "status",
    "failure_class",
    "reason",
    "step",
    "total_steps",
    "attempt",
    "priority",
    "device",
    "parameter_count",
    "created_at",
    "queued_at",
    "started_at",
    "finished_at",
    "config_hash",
)
LATEST = ("train_loss", "validation_accuracy", "test_accuracy")
DIVERGENCE = ("step", "layer", "kind")
IDENTITY = ("run_id", "task", "cell", "depth", "seed")


class Sheet:
    """A CSV file with one header line."""

    def __init__(self, stream: TextIO, header: Sequence[str]) -> None:
        self._writer = csv.writer(stream, lineterminator="\n")
        self._writer.writerow(header)

    def row(self, *values: object) -> None:
        """Write one row; an absent value is an empty field."""
        self._writer.writerow([_field(value) for value in values])


def runs_sheet(stream: TextIO) -> Sheet:
    """A sheet for `write_run`."""
    return Sheet(stream, (*RUN_FIELDS, *LATEST, *(f"divergence_{name}" for name in DIVERGENCE), "config", *COST))


def write_run(sheet: Sheet, run: Run) -> None:
    """One row: the run, its last values, where it diverged, and its configuration as JSON."""
    sheet.row(
        *(getattr(run, name) for name in RUN_FIELDS),
        *(run.latest.get(name) for name in LATEST),
        *(getattr(run.divergence, name, None) for name in DIVERGENCE),
        json.dumps(run.config, separators=(",", ":")),
        *(getattr(run, name) for name in COST),
    )


def metrics_sheet(stream: TextIO) -> Sheet:
    """A sheet for `write_metrics`."""
    return Sheet(stream, (*IDENTITY, "key", "attempt", "step", "value"))


def write_metrics(sheet: Sheet, run: Run, series: Iterable[MetricSeries]) -> None:
    """One row per key and step."""
    for one in series:
        for attempt, step, value in zip(one.attempts, one.steps, one.values, strict=True):
            sheet.row(*_identity(run), one.key, attempt, step, value)


def hidden_norms_sheet(stream: TextIO) -> Sheet:
    """A sheet for `write_hidden_norms`."""
    measured = ("mean", "deviation", "minimum", "maximum", "non_finite")
    return Sheet(stream, (*IDENTITY, "statistic", "layer", "attempt", "step", *measured))


def write_hidden_norms(sheet: Sheet, run: Run, trace: HiddenNormTrace) -> None:
    """One row per statistic, step and layer."""
    for one in trace.series:
        for index, step in enumerate(one.steps):
            for layer in range(trace.layers):
                measured = (one.mean, one.deviation, one.minimum, one.maximum, one.non_finite)
                values = (values[index][layer] for values in measured)
                sheet.row(*_identity(run), one.statistic, layer, one.attempts[index], step, *values)


def write_stability(stream: TextIO, stability: Stability) -> None:
    """One row per measure, paired difference and accuracy, in the API's units (spreads in ln)."""
    header = ("kind", "task", "cell", "depth", "measure", "estimate", "low", "high", "n", "unit")
    sheet = Sheet(stream, (*header, "bootstrap_low", "bootstrap_high"))
    units = {measure.name: measure.unit for measure in stability.measures}
    for row in stability.rows:
        where = (row.task, row.cell, row.depth, row.measure)
        unit = units.get(row.measure)
        boot = (row.bootstrap_low, row.bootstrap_high)
        sheet.row("measure", *where, row.estimate, row.low, row.high, row.n, unit, *boot)
    for over in stability.over_depth:
        depths = " ".join(map(str, over.depths))
        boot = (over.bootstrap_low, over.bootstrap_high)
        value = (over.estimate, over.low, over.high, over.n)
        sheet.row("measure", over.task, over.cell, depths, over.measure, *value, "ln", *boot)
    for pair in (*stability.paired, *stability.paired_settling):
        where_paired = (pair.task, pair.cell, "all" if pair.depth is None else pair.depth, pair.measure)
        unit = units.get(pair.measure)
        boot = (pair.bootstrap_low, pair.bootstrap_high)
        sheet.row("difference_to_rotrnn", *where_paired, pair.difference, pair.low, pair.high, pair.n, unit, *boot)
    for share in stability.accuracy:
        where = (share.task, share.cell, share.depth, "test_accuracy")
        boot = (share.bootstrap_low, share.bootstrap_high)
        sheet.row("accuracy", *where, share.estimate, share.low, share.high, share.n, "share", *boot)


def _identity(run: Run) -> tuple[object, ...]:
    return (run.id, run.task, run.cell, run.depth, run.seed)


def _field(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    return repr(shown) if isinstance(shown := plain(value), float) else shown
