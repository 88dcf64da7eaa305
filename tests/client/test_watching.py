"""Does watching say how far things are, and bear an API that is away for a moment?"""

import dataclasses
import io
import itertools
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from client.cli import formats, output, watching
from client.cli.watching import Pace, outcome, patiently, run_words, watch_run, watch_sweep
from client.errors import APIUnreachable, RotBenchError
from client.results import Divergence, Run, RunPage, Sweep, Worker

RUN = Run(
    "r1", None, None, "running", None, None, {}, "h", "rotrnn", "t", 2, 7, 0, 1200, 1, "normal",
    datetime(2030, 1, 1, tzinfo=UTC), None, None, None, None, "cpu", None, 65.0, {"train_loss": 2.0},
)  # fmt: skip
AWAY = APIUnreachable("no answer", url="u", remedy="wait")


class Script:
    """A client that answers in turn, and raises what is an exception."""

    def __init__(self, *answers: Any, running: tuple[Run, ...] = ()) -> None:
        self.answers = list(answers)
        self.running = running

    def run(self, _: str) -> Any:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    get_sweep = run

    def workers(self) -> tuple[Worker, ...]:
        return ()

    def run_page(self, **_: object) -> RunPage:
        return RunPage(self.running, None)


def sweep(**counts: int) -> Sweep:
    return Sweep("s1", "n", datetime(2030, 1, 1, tzinfo=UTC), {}, {}, sum(counts.values()), counts)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that makes stderr a terminal of that width, or a pipe, and gives back what is written there."""
    monkeypatch.setattr(watching.time, "sleep", lambda _: None)

    def make(width: int | None) -> io.StringIO:
        stream = io.StringIO()
        console = Console(file=stream, width=width or 80, force_terminal=width is not None, color_system=None)
        for module in (output, watching):
            monkeypatch.setattr(module, "err", console)
        return stream

    return make


def lines(stream: io.StringIO) -> list[str]:
    return [line for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\n", stream.getvalue()).splitlines() if line.strip()]


def test_in_a_pipe_a_run_is_told_by_its_changes_only(screen: Any) -> None:
    stream = screen(None)
    at = [dataclasses.replace(RUN, step=step) for step in (0, 600)]
    end = dataclasses.replace(RUN, step=1200, status="succeeded", latest={"test_accuracy": 0.5}, seconds_left=None)
    assert watch_run(Script(*at, end), "r1") == end  # type: ignore[arg-type]
    assert lines(stream) == [
        "rotrnn depth 2 seed 7: running, step 0/1,200, loss 2, 1:05 left",
        "rotrnn depth 2 seed 7: succeeded, step 1,200/1,200, accuracy 50.0 %",
    ]


def test_in_a_terminal_a_run_has_a_bar_with_step_loss_and_time_left(screen: Any) -> None:
    stream = screen(110)
    end = dataclasses.replace(RUN, step=1200, status="succeeded", latest={"train_loss": 1.25, "test_accuracy": 0.5})
    watch_run(Script(RUN, end), "r1")  # type: ignore[arg-type]
    last = lines(stream)[-1]
    for part in ("rotrnn depth 2 seed 7", "step 1,200/1,200", "loss 1.25", "accuracy 50.0 %", "1:05 left"):
        assert part in last


@pytest.mark.parametrize("width", [40, 80, 140])
def test_a_sweep_has_a_bar_for_all_and_one_for_each_running_run_and_fits(screen: Any, width: int) -> None:
    stream = screen(width)
    running = (dataclasses.replace(RUN, step=600), dataclasses.replace(RUN, id="r2", seed=8))
    script = Script(sweep(queued=1, running=2), sweep(succeeded=2, diverged=1), running=running)
    assert watch_sweep(script, "s1").done == 3  # type: ignore[arg-type]
    shown = lines(stream)
    assert max(map(len, shown)) <= width
    assert any("0 of 3 runs" in line for line in shown)
    assert any("seed 8" in line or width == 40 for line in shown)


def test_runs_that_wait_for_a_worker_that_is_not_there_are_told_once(screen: Any, monkeypatch: Any) -> None:
    stream = screen(None)
    clock = itertools.count(step=10)
    monkeypatch.setattr(watching.time, "monotonic", lambda: float(next(clock)))
    waiting = [dataclasses.replace(RUN, status="queued") for _ in range(9)]
    watch_run(Script(*waiting, dataclasses.replace(RUN, status="cancelled")), "r1")  # type: ignore[arg-type]
    assert stream.getvalue().count("No worker reports") == 1


def test_an_api_that_is_away_for_a_moment_is_waited_for(screen: Any) -> None:
    screen(None)
    end = dataclasses.replace(RUN, status="succeeded")
    no_database = RotBenchError("the database is away", status=503)
    assert watch_run(Script(RUN, AWAY, no_database, end), "r1") == end  # type: ignore[arg-type]
    with pytest.raises(RotBenchError, match="gone"):
        watch_run(Script(RUN, RotBenchError("gone", status=404), end), "r1")  # type: ignore[arg-type]


def test_an_api_that_stays_away_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching.time, "sleep", lambda _: None)
    clock = itertools.count()
    monkeypatch.setattr(watching.time, "monotonic", lambda: float(next(clock)))

    def ask() -> None:
        raise AWAY

    with pytest.raises(APIUnreachable):
        patiently(ask, 5)
    assert next(clock) > 5


def test_time_left_follows_the_pace_since_watching_began() -> None:
    times = iter([0.0, 1.0, 10.0, 20.0])
    pace = Pace(lambda: next(times))
    assert pace.seconds_left(4, 10) is None
    assert pace.seconds_left(5, 10) is None
    assert pace.seconds_left(6, 10) == pytest.approx(20)
    assert pace.seconds_left(10, 10) == 0


def test_words_about_a_run_tell_loss_that_is_not_a_number_and_where_it_diverged() -> None:
    broken = dataclasses.replace(
        RUN, status="diverged", latest={"train_loss": float("nan")}, divergence=Divergence(3, None, "parameter")
    )
    assert run_words(broken) == "step 0/1,200, loss nan"
    assert outcome(broken) == "diverged at step 3, first outside the layers (parameter)"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (59.4, "59 s"), (60, "1:00"), (3661, "1:01:01"), (None, "-"), (float("nan"), "-")]
)
def test_durations_are_short(seconds: float | None, text: str) -> None:
    assert formats.duration(seconds) == text


def test_sizes_and_ages_have_their_largest_unit() -> None:
    assert [formats.size(number) for number in (0, 1023, 2048, 3 * 2**30)] == ["0 B", "1023 B", "2.0 KiB", "3.0 GiB"]
    now = datetime(2030, 1, 2, tzinfo=UTC)
    assert formats.ago(datetime(2030, 1, 1, tzinfo=UTC), now) == "1 d ago"
    assert formats.ago(now, datetime(2030, 1, 1, tzinfo=UTC)) == "0 s ago"
