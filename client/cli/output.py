"""How does a command speak? Tables and words for people in a terminal, plain lines in a pipe, JSON for programs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from client.wire import to_json

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False)

Cell = str | Text
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON to stdout and nothing else.")]

STATUS_STYLES = {
    "queued": "dim",
    "running": "cyan",
    "paused": "yellow",
    "cancelling": "yellow",
    "succeeded": "green",
    "diverged": "magenta",
    "failed": "bold red",
    "cancelled": "dim",
}


@dataclass(frozen=True)
class Column:
    """A column of a table; where the terminal is narrow the highest `rank` above 0 goes first."""

    title: str
    rank: int = 0
    right: bool = False


def say(text: str = "") -> None:
    """A line for people on stdout, as it is."""
    out.print(Text(text), soft_wrap=True)


def prose(text: str, style: str = "") -> None:
    """Sentences for people on stdout, broken between words at the terminal's edge; one line in a pipe."""
    out.print(Text(text, style=style), soft_wrap=not out.is_terminal)


def note(text: str) -> None:
    """A line for people on stderr, dim in a terminal, so that stdout stays clean."""
    err.print(Text(text, style="dim"), soft_wrap=True)


def complain(message: str, remedy: str | None = None) -> None:
    """An error on stderr, with what to do about it on a line of its own."""
    err.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True)
    if remedy:
        err.print(f"[bold]remedy:[/] {escape(remedy)}", soft_wrap=True)


def json_out(value: Any) -> None:
    """A result as JSON on stdout."""
    typer.echo(to_json(value))


def status_text(status: str, words: str | None = None) -> Text:
    """A status, or words about it, in its colour."""
    return Text(status if words is None else words, style=STATUS_STYLES.get(status, ""))


def table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
    """Rows under titles: as wide as the terminal allows, or aligned plain text in a pipe."""
    cells = [[cell if isinstance(cell, Text) else Text(cell) for cell in row] for row in rows]
    if not out.is_terminal:
        _plain_table(columns, [[cell.plain.replace("\n", " ") for cell in row] for row in cells])
        return
    kept = _columns_that_fit(columns, cells, out.width)
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for index in kept:
        column = columns[index]
        drawn.add_column(column.title, justify="right" if column.right else "left", overflow="fold")
    for row in cells:
        drawn.add_row(*(row[index] for index in kept))
    out.print(drawn, soft_wrap=False)


def pairs(rows: Sequence[tuple[str, Cell]]) -> None:
    """Names and values, one pair a line."""
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        shown = value if isinstance(value, Text) else Text(value)
        out.print(Text.assemble((f"{name:<{width}}  ", "bold"), shown), soft_wrap=True)


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[Text]]) -> list[int]:
    return [
        max([len(column.title), *(len(line) for row in cells for line in row[index].plain.split("\n"))])
        for index, column in enumerate(columns)
    ]


def _columns_that_fit(columns: Sequence[Column], cells: Sequence[Sequence[Text]], width: int) -> list[int]:
    widths, kept = _widths(columns, cells), list(range(len(columns)))
    while sum(widths[index] + 2 for index in kept) - 2 > width:
        least = max(kept, key=lambda index: (columns[index].rank, index))
        if columns[least].rank == 0:
            break
        kept.remove(least)
    return kept


def _plain_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    lines = [[column.title for column in columns], *rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    for line in lines:
        shown = (
            cell.rjust(width) if column.right else cell.ljust(width)
            for cell, width, column in zip(line, widths, columns, strict=True)
        )
        typer.echo("  ".join(shown).rstrip())
