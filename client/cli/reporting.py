"""How does the stability report look on a screen? The table, the paired differences and the verdict."""

from collections.abc import Sequence

from rich.text import Text

from client.cli.output import Column, out, pairs, prose, say, table
from client.report import (
    SPREADS,
    ConditionRow,
    DifferenceRow,
    conditions,
    definitions,
    differences,
    over_depth,
    tasks,
    verdict,
)
from client.stability import Stability

ONE_LINE_WIDTH, TITLE_WIDTH, TABLE_WIDTH = 132, 96, 80
"""From these widths on: a quantity on one line, a cell by its title, a table at all."""
VERDICT_STYLES = {True: "bold green", False: "bold red", None: "bold yellow"}


def show_report(stability: Stability) -> None:
    """Print accuracy and spreads per cell and depth, the differences to RotRNN, and the claim as the API judged it."""
    rows = conditions(stability)
    if not rows:
        say("No run with a trace yet: the table fills as runs end.")
        return
    _heading("Final test accuracy, and spread of the relative hidden norm as a factor (1 is no spread)")
    if out.is_terminal and out.width < TABLE_WIDTH:
        _show_blocks(rows)
    else:
        _show_table(rows)
    prose("Each with its 95% interval over n seeds. Spreads are of ln(norm / norm at step 0), shown as exp of it:")
    for definition in definitions(stability):
        prose(f"- {definition}")
    paired = differences(stability)
    if paired:
        _heading("Spread over training minus that of RotRNN at equal depth and seed, in ln (above 0: moves more)")
        with_task, columns = _leading(rows)
        table(
            [*columns, Column("difference"), Column("in settling step", 1)],
            [[*_names(row, with_task), row.depth, row.difference.text(), row.settling.text()] for row in paired],
        )
    for line in over_depth(stability):
        depths = ", ".join(map(str, line.depths))
        prose(f"Over depths {depths} the last norms of {line.title} on {line.task} spread by {line.spread.text()}.")
    _show_claim(stability)
    for warning in stability.warnings:
        prose(f"Note: {warning}")


def _show_table(rows: Sequence[ConditionRow]) -> None:
    between = "\n" if out.is_terminal and out.width < ONE_LINE_WIDTH else " "
    with_task, columns = _leading(rows)
    table(
        [*columns, Column("parameters", 1, right=True), Column("accuracy"), *(Column(title) for _, title in SPREADS)],
        [
            [
                *_names(row, with_task),
                str(row.depth),
                row.parameters,
                *(quantity.text(between) for quantity in (row.accuracy, *row.spreads)),
            ]
            for row in rows
        ],
    )


def _show_blocks(rows: Sequence[ConditionRow]) -> None:
    for row in rows:
        prose(f"{row.title}, depth {row.depth}, {row.task}")
        quantities = zip((title for _, title in SPREADS), row.spreads, strict=True)
        pairs([("  accuracy", row.accuracy.text()), *((f"  {title}", spread.text()) for title, spread in quantities)])


def _leading(rows: Sequence[ConditionRow]) -> tuple[bool, list[Column]]:
    with_task = len(tasks(rows)) > 1
    return with_task, [*([Column("task")] if with_task else []), Column("cell"), Column("depth", right=True)]


def _names(row: ConditionRow | DifferenceRow, with_task: bool) -> list[str]:
    narrow = out.is_terminal and out.width < TITLE_WIDTH
    return [*([row.task] if with_task else []), row.cell if narrow else row.title]


def _show_claim(stability: Stability) -> None:
    _heading("Claim under test")
    claim = stability.claim
    prose(claim.sentence)
    for title, finding in (
        ("RotRNN's norm stays nearly constant", claim.rotrnn_constant),
        ("LRU's norm does not", claim.lru_not_constant),
    ):
        out.print(Text(f"- {title}: ").append(verdict(finding.seen), style=VERDICT_STYLES[finding.seen]))


def _heading(text: str) -> None:
    say()
    prose(text, style="bold")
