"""What do pages ask about a sweep? Questions that can be asked ahead, whose answers stay while its runs do not move."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from client import HiddenNormComparison, ProfileGroup, RotBench, Run, Stability, SurvivalGroup, Sweep
from dashboard.connection import Answer, line

T = TypeVar("T")
MOVING = ("queued", "running", "cancelling")
SETTLED_S = 900.0


@dataclass(frozen=True)
class Question(Generic[T]):
    """A question to the API: its name, how it is asked, and how old an answer may be."""

    name: Hashable
    call: Callable[[RotBench], T]
    fresh_s: float

    def ask(self) -> Answer[T]:
        """Its answer."""
        return line().ask(self.name, self.call, fresh_s=self.fresh_s)

    def ahead(self) -> None:
        """Begin to ask it, since the page will."""
        line().ahead(self.name, self.call, fresh_s=self.fresh_s)


def moves(sweep: Sweep) -> bool:
    """Whether a run of the sweep waits for a worker or trains."""
    return any(sweep.counts.get(status) for status in MOVING)


def about(
    sweep: Sweep | None, name: tuple[Hashable, ...], call: Callable[[RotBench], T], *, fresh_s: float = 0.8
) -> Question[T]:
    """A question about a sweep's runs, or about all runs.

    Of a sweep none of whose runs moves, an answer is good until their counts by status change, which are in its name.
    """
    if sweep is None or moves(sweep):
        return Question((sweep and sweep.id, *name), call, fresh_s)
    return Question((sweep.id, *name, *sorted(sweep.counts.items())), call, SETTLED_S)


def anything_moves() -> bool:
    """Whether any run waits for a worker or trains."""
    found = line().ask(("runs", "moving"), lambda bench: bench.run_page(status=MOVING, limit=1).items)
    return bool(found.value)


def lives(sweep: Sweep | None) -> Question[tuple[SurvivalGroup, ...]]:
    """Which tasks, cells and depths there are, and the fate of their seeds."""
    sweep_id = sweep.id if sweep else None
    return about(sweep, ("survival",), lambda bench: bench.survival(sweep_id=sweep_id), fresh_s=2.0)


def stability(sweep: Sweep | None, task: str | None) -> Question[Stability]:
    """The stability numbers, accuracies and costs."""
    sweep_id = sweep.id if sweep else None
    return about(sweep, ("stability", task), lambda bench: bench.stability(sweep_id=sweep_id, task=task), fresh_s=2.0)


def norms(
    sweep: Sweep | None, task: str | None, depth: int | None, statistic: str, *, single_seeds: bool, most_steps: int
) -> Question[HiddenNormComparison]:
    """Hidden norms over seeds, with the curve of each diverged seed, or of every seed."""
    sweep_id = sweep.id if sweep else None
    return about(
        sweep,
        ("norms", task, depth, statistic, single_seeds, most_steps),
        lambda bench: bench.compare_hidden_norms(
            statistic=statistic,
            sweep_id=sweep_id,
            task=task,
            depth=depth,
            runs=single_seeds,
            diverged=True,
            scale="log",
            max_steps=most_steps,
        ),
    )


def profiles(
    sweep: Sweep | None, task: str | None, depth: int | None, statistic: str, step: int | None
) -> Question[tuple[ProfileGroup, ...]]:
    """Norms along the sequence at the last kept step, or at the last up to `step`."""
    sweep_id = sweep.id if sweep else None
    return about(
        sweep,
        ("profiles", task, depth, statistic, step),
        lambda bench: (
            bench.compare_profiles(statistic=statistic, sweep_id=sweep_id, task=task, depth=depth, step=step).groups
        ),
        fresh_s=5.0,
    )


def diverged(sweep: Sweep | None) -> Question[tuple[Run, ...]]:
    """The runs that diverged, the newest 200."""
    sweep_id = sweep.id if sweep else None
    return about(
        sweep,
        ("runs", "diverged"),
        lambda bench: bench.run_page(sweep_id=sweep_id, status="diverged", limit=200).items,
    )
