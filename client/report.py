"""What do the stability numbers say to a reader? Table cells and sentences from the API's answer; nothing is computed.

Spreads are of the natural logarithm of the relative norm; readers see exp(spread), the factor by which the norm moves.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from client.palette import cell_order, cell_style
from client.stability import AccuracyRow, OverDepthRow, PairedRow, Stability, StabilityRow

ABSENT = "-"
SPREADS = (
    ("spread_over_training", "over training"),
    ("spread_over_layers", "over layers"),
    ("spread_over_seeds", "over seeds"),
)


@dataclass(frozen=True)
class Quantity:
    """An estimate, its 95% interval and its n, as text; the interval is empty where there is none."""

    estimate: str
    interval: str
    n: int

    def text(self, between: str = " ") -> str:
        """All three in one, such as 1.04 [1.02, 1.06] n=3."""
        if self.estimate == ABSENT and self.n == 0:
            return ABSENT
        return between.join(part for part in (self.estimate, self.interval, f"n={self.n}") if part)


NOTHING = Quantity(ABSENT, "", 0)


@dataclass(frozen=True)
class ConditionRow:
    """One cell at one depth: final test accuracy, the three spreads, and how many parameters its networks have."""

    task: str
    cell: str
    title: str
    depth: int
    accuracy: Quantity
    spreads: tuple[Quantity, ...]
    parameters: str = ABSENT


@dataclass(frozen=True)
class DifferenceRow:
    """A cell against RotRNN at equal depth and seed: in spread over training (ln), and in settling step."""

    task: str
    cell: str
    title: str
    depth: str
    difference: Quantity
    settling: Quantity = NOTHING


@dataclass(frozen=True)
class OverDepthLine:
    """How far a cell's final norms lie apart over depths, as a factor."""

    task: str
    cell: str
    title: str
    depths: tuple[int, ...]
    spread: Quantity


def conditions(stability: Stability) -> tuple[ConditionRow, ...]:
    """The table's rows: by task, cell (RotRNN first) and depth."""
    accuracy = {(row.task, row.cell, row.depth): row for row in stability.accuracy}
    spreads = {(row.task, row.cell, row.depth, row.measure): row for row in stability.rows}
    keys = {*accuracy, *((row.task, row.cell, row.depth) for row in stability.rows)}
    return tuple(
        ConditionRow(
            task=key[0],
            cell=key[1],
            title=cell_style(key[1]).title,
            depth=key[2],
            accuracy=_share(accuracy.get(key)),
            spreads=tuple(_factor(spreads.get((*key, measure))) for measure, _ in SPREADS),
            parameters=_counts([row.parameters for row in stability.costs if (row.task, row.cell, row.depth) == key]),
        )
        for key in sorted(keys, key=lambda key: (key[0], cell_order(key[1]), key[2]))
    )


def differences(stability: Stability) -> tuple[DifferenceRow, ...]:
    """The paired differences: by task, cell and depth, all depths last."""

    def place(row: PairedRow) -> tuple[object, ...]:
        return (row.task, cell_order(row.cell), row.depth is None, row.depth or 0)

    settling = {(row.task, row.cell, row.depth): row for row in stability.paired_settling}
    return tuple(
        DifferenceRow(
            task=row.task,
            cell=row.cell,
            title=cell_style(row.cell).title,
            depth="all" if row.depth is None else str(row.depth),
            difference=_quantity(row.difference, row.low, row.high, row.n, "{:+.3f}"),
            settling=_steps(settling.get((row.task, row.cell, row.depth))),
        )
        for row in sorted(stability.paired, key=place)
    )


def over_depth(stability: Stability) -> tuple[OverDepthLine, ...]:
    """The spread over depth of each cell, RotRNN first."""
    return tuple(
        OverDepthLine(row.task, row.cell, cell_style(row.cell).title, row.depths, _factor(row))
        for row in sorted(stability.over_depth, key=lambda row: (row.task, cell_order(row.cell)))
    )


def definitions(stability: Stability) -> tuple[str, ...]:
    """One line per spread: its title and definition in the API's words."""
    wanted = [name for name, _ in SPREADS]
    return tuple(f"{measure.title}: {measure.definition}" for measure in stability.measures if measure.name in wanted)


def verdict(seen: bool | None) -> str:
    """Seen, not seen or undecided."""
    return {True: "seen", False: "not seen", None: "undecided"}[seen]


def tasks(rows: Iterable[ConditionRow | DifferenceRow]) -> tuple[str, ...]:
    """The tasks in the rows, each once."""
    return tuple(dict.fromkeys(row.task for row in rows))


def _share(row: AccuracyRow | None) -> Quantity:
    if row is None or row.estimate is None:
        return NOTHING
    low, high = (None if bound is None else 100 * bound for bound in (row.low, row.high))
    return _quantity(100 * row.estimate, low, high, row.n, "{:.1f}", unit=" %")


def _steps(row: PairedRow | None) -> Quantity:
    return NOTHING if row is None else _quantity(row.difference, row.low, row.high, row.n, "{:+.0f}")


def _counts(counts: Sequence[int]) -> str:
    """One number, or the least and the greatest."""
    return "-".join(f"{count:,}" for count in sorted({min(counts), max(counts)})) if counts else ABSENT


def _factor(row: StabilityRow | OverDepthRow | None) -> Quantity:
    if row is None or row.estimate is None:
        return Quantity(ABSENT, "", row.n if row else 0)
    low, high = (None if bound is None else _exp(bound) for bound in (row.low, row.high))
    return _quantity(_exp(row.estimate), low, high, row.n, "{:.3f}")


def _exp(logarithm: float) -> float:
    return math.inf if logarithm > 700 else math.exp(logarithm)


def _quantity(
    estimate: float | None, low: float | None, high: float | None, n: int, form: str, unit: str = ""
) -> Quantity:
    if estimate is None:
        return Quantity(ABSENT, "", n)
    interval = "" if low is None or high is None else f"[{_shown(low, form)}, {_shown(high, form)}]"
    return Quantity(_shown(estimate, form) + unit, interval, n)


def _shown(value: float, form: str) -> str:
    return form.format(value) if abs(value) < 1000 or not math.isfinite(value) else f"{value:.3g}"
