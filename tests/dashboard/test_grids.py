"""Does a sweep lie on its plane as its grid says, and does its cost add up?"""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from client import Run
from dashboard.figures.cells import cells_figure, cells_sheet
from dashboard.grids import cost, matrix, name_of

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
GRID = {"model.cell": [{"name": "rotrnn"}, {"name": "lru"}], "model.n_layers": [2, 1], "training.seed": [0, 1, 2]}


def whole(run: Any) -> list[Run]:
    return [run(cell, depth, seed) for cell in ("rotrnn", "lru") for depth in (2, 1) for seed in range(3)]


def test_one_field_goes_across_and_the_others_down_in_the_order_of_the_grid(run: Any) -> None:
    found = matrix(whole(run), GRID, "training.seed")
    assert found.columns == ("seed 0", "seed 1", "seed 2")
    assert found.rows == tuple(f"{c} \u00b7 depth {d}" for c in ("RotRNN", "LRU (learned)") for d in (2, 1))
    assert found.runs[2, 1].id == "lru-learned-2-1"
    assert len(found.runs) == 12


def test_a_field_that_the_grid_lacks_gives_one_column(run: Any) -> None:
    found = matrix([run(), run("lru")], {"model.cell": GRID["model.cell"]}, "training.seed")
    assert (found.rows, found.columns) == (("RotRNN", "LRU (learned)"), ("all",))


def test_cells_that_share_a_title_are_told_apart_by_their_options(run: Any) -> None:
    found = matrix([run({"name": "lru", "r_max": r}) for r in (0.9, 0.99)], {"model.cell": [1, 2]}, "training.seed")
    assert len(set(found.rows)) == 2
    assert "r_max 0.9," in found.rows[0]


def test_a_run_that_was_deleted_leaves_its_place_empty(run: Any) -> None:
    runs = whole(run)
    del runs[4]
    assert len(matrix(runs, GRID, "training.seed").runs) == 11


def test_the_cost_left_follows_from_the_pace_of_runs_of_the_same_kind(run: Any) -> None:
    half = run(seed=1, status="running", step=50, started_at=NOON, finished_at=None)
    queued = run(seed=2, status="queued", step=0, started_at=None, finished_at=None)
    other = run("lru", seed=0, finished_at=NOON + timedelta(seconds=1000))
    found = cost([run(), half, queued, other], NOON + timedelta(seconds=25))
    assert found.spent_s == 100 + 25 + 1000
    assert found.left_s == pytest.approx((150 + 200) * 125 / 250)
    assert found.wall_left_s == found.left_s


def test_without_a_pace_nobody_knows_what_is_left(run: Any) -> None:
    queued = run(status="queued", step=0, started_at=None, finished_at=None)
    assert cost([queued], NOON).left_s is None
    assert cost([run()], NOON).left_s == 0


def test_a_dotted_field_is_said_as_people_say_it() -> None:
    assert [name_of(f) for f in ("model.n_layers", "training.learning_rate")] == ["depth", "learning rate"]


def test_every_cell_of_the_figure_says_its_state_and_its_accuracy(run: Any) -> None:
    runs = [run(), run(seed=1, status="running", step=50, latest={}), run(seed=2, status="queued", latest={})]
    figure = cells_figure(matrix(runs, GRID, "training.seed"), "State", "light", columns=4)
    letters = figure.data[1]
    assert list(letters.text) == ["\u2713 20.0", "\u25b8 25 %", "\u25cb"]
    stuck = cells_figure(matrix([run(stuck=True)], GRID, "training.seed"), "State", "light", columns=4)
    assert stuck.data[1].text[0] == "\u2713 ! 20.0"
    assert list(letters.customdata) == [one.id for one in runs]
    assert len({value for row in figure.data[0].z for value in row}) == 3
    assert list(figure.layout.xaxis.ticktext) == ["0", "1", "2"]


def test_where_there_is_no_room_a_sign_alone_says_what_is_not_done(run: Any) -> None:
    runs = [run(seed=seed, status="failed" if seed == 3 else "succeeded") for seed in range(20)]
    text = cells_figure(matrix(runs, GRID, "training.seed"), "State", "light", columns=4).data[1].text
    assert [sign for sign in text if sign] == ["\u2715"]


def test_shaded_by_accuracy_the_lowest_is_pale_and_the_highest_full(run: Any) -> None:
    runs = [run(), run(seed=1), run(seed=2, latest={})]
    figure = cells_figure(matrix(runs, GRID, "training.seed"), "Accuracy", "dark", columns=4)
    assert np.array(figure.data[0].z, dtype=float)[0, :2].tolist() == [0.0, 1.0]
    assert figure.data[0].z[0][2] is None


def test_text_of_users_is_never_markup_in_the_figure(run: Any) -> None:
    figure = cells_figure(matrix([run(name="<b>x</b>")], GRID, "training.seed"), "State", "light", columns=4)
    assert "&lt;b&gt;x" in figure.data[1].hovertext[0]


def test_the_sheet_has_a_line_per_run(run: Any) -> None:
    sheet = cells_sheet(matrix(whole(run), GRID, "training.seed"))
    assert sheet["run"][0] == "rotrnn-2-0"
    assert sheet["accuracy"][:3] == pytest.approx([0.2, 0.3, 0.4])
