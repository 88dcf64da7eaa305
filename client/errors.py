"""What can go wrong for a caller? One error type with the API's own words, and one for no answer at all."""

from collections.abc import Mapping
from typing import Any


class RotBenchError(Exception):
    """The API refused, or answered something that cannot be used.

    Args:
        detail: What is wrong, as a sentence.
        status: HTTP status, None when no answer came.
        title: Short name of the kind of problem.
        field: Dotted path of the field that is wrong, such as "model.d_state".
        value: What was given there.
        remedy: What to do about it.
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        title: str | None = None,
        field: str | None = None,
        value: object = None,
        remedy: str | None = None,
    ) -> None:
        self.detail = detail
        self.status = status
        self.title = title
        self.field = field
        self.value = value
        self.remedy = remedy
        super().__init__(self.message)

    @property
    def message(self) -> str:
        """Detail, then the remedy unless the detail says it already."""
        if self.remedy is None or self.remedy.rstrip(".") in self.detail:
            return self.detail
        return f"{self.detail.rstrip('.')}: {self.remedy}"

    @property
    def away(self) -> bool:
        """Whether the API, or what it needs, cannot be reached now, so that the same question may be answered later."""
        return (self.status or 0) >= 500

    @classmethod
    def from_problem(cls, status: int, problem: Mapping[str, Any]) -> "RotBenchError":
        """The error that a problem document describes."""
        title = str(problem.get("title") or f"HTTP {status}")
        return cls(
            str(problem.get("detail") or title),
            status=status,
            title=title,
            field=problem.get("field"),
            value=problem.get("value"),
            remedy=problem.get("remedy"),
        )


class APIUnreachable(RotBenchError):
    """No API is known, or the one that is known gives no answer."""

    def __init__(self, detail: str, *, url: str | None, remedy: str) -> None:
        self.url = url
        super().__init__(detail, title="API unreachable", remedy=remedy)

    @property
    def away(self) -> bool:
        return True
