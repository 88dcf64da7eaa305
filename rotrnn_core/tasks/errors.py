"""What is said when data cannot be had? Errors that end a run as data_missing, with what to do."""

from pathlib import Path


class DataMissing(Exception):
    """The data of a task cannot be had; the text says what was tried and what to do."""


class BadData(DataMissing):
    """Data are there and are not what they should be.

    Args:
        path: The file.
        problem: What is wrong, as a sentence without a final full stop.
        line: Number of the line, from 1, in a file of lines.
    """

    def __init__(self, path: Path | str, problem: str, line: int | None = None) -> None:
        super().__init__(f"{path}{'' if line is None else f':{line}'}: {problem}")
