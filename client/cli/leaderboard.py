"""What do others report, and what has any network to beat? Published figures and floors beside a comparison."""

from collections.abc import Iterable

from client.catalogue import PublishedFigure, Task
from client.cli.output import Column, prose, say, table
from client.report import ABSENT
from client.stability import Stability


def show_published(stability: Stability, known: Iterable[Task]) -> None:
    """The published figures of each task compared, and every result that is below its task's floor."""
    compared = {row.task for row in stability.accuracy}
    for task in known:
        if task.name not in compared:
            continue
        if task.published:
            say()
            say(f"Reported elsewhere for {task.title}, as each source states it (S), or unverified (U):")
            table(
                (Column("model"), Column("accuracy", right=True), Column("mark"), Column("source", 2)),
                [[row.model, accuracy(row), row.mark, _source(row)] for row in task.published],
            )
        for line in below_floor(stability, task):
            prose(line)


def below_floor(stability: Stability, task: Task) -> list[str]:
    """A sentence for each cell and depth whose mean accuracy is below the task's floor."""
    floor = task.floor
    if floor is None:
        return []
    what = task.floor_method if floor == task.floor_simple else "always saying the commonest class"
    return [
        f"Below the floor: {row.cell} at depth {row.depth} has {100 * row.estimate:.1f} % on {task.title}, "
        f"and {what} has {100 * floor:.1f} %."
        for row in stability.accuracy
        if row.task == task.name and row.estimate is not None and row.estimate < floor
    ]


def accuracy(figure: PublishedFigure) -> str:
    """Percent, with the standard error where one is reported."""
    if figure.accuracy is None:
        return "fails"
    error = "" if figure.standard_error is None else f" ({100 * figure.standard_error:.1f})"
    return f"{100 * figure.accuracy:.1f}{error} %"


def _source(figure: PublishedFigure) -> str:
    return ", ".join(part for part in (figure.source, figure.note) if part) or ABSENT
