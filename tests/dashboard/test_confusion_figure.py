"""Does the map of classes show the share of each class, and say nothing of classes without examples?"""

import numpy as np
import pytest

from dashboard.figures.confusion import class_accuracies, confusion_figure

COUNTS = ((3, 1, 0), (0, 8, 0), (0, 0, 0))


def test_a_row_shows_what_its_class_is_taken_for_in_shares() -> None:
    (drawn,) = confusion_figure(COUNTS, ("cat", "dog", "bird"), "rotrnn", "light", columns=4).data
    assert list(drawn.x) == list(drawn.y) == ["cat", "dog", "bird"]
    np.testing.assert_allclose(drawn.z[:2], [[0.75, 0.25, 0], [0, 1, 0]])
    assert np.isnan(drawn.z[2]).all()
    assert list(drawn.text[0]) == ["75%", "25%", ""]


@pytest.mark.parametrize("classes", [2, 35])
def test_classes_without_names_go_by_their_numbers_and_many_of_them_without_text(classes: int) -> None:
    (drawn,) = confusion_figure(np.eye(classes, dtype=int).tolist(), (), "lru-tied", "dark", columns=4).data
    assert list(drawn.y) == [str(place) for place in range(classes)]
    assert (drawn.texttemplate is None) == (classes > 12)


def test_names_stand_upright_where_they_do_not_fit_beside_each_other() -> None:
    names = [f"a name {place}" for place in range(10)]
    wide, narrow = (
        confusion_figure(np.eye(10, dtype=int).tolist(), names, "rotrnn", "light", columns=columns).layout
        for columns in (4, 1)
    )
    assert (wide.xaxis.tickangle, narrow.xaxis.tickangle) == (0, -90)
    assert narrow.margin.b > wide.margin.b
    assert narrow.margin.l > 60
    assert list(narrow.yaxis.range) == [9.5, -0.5]


def test_the_sheet_tells_each_class_and_its_worst_neighbour() -> None:
    assert class_accuracies(COUNTS, ("cat", "dog", "bird")) == {
        "Class": ["cat", "dog", "bird"],
        "Recognised": [0.75, 1.0, None],
        "Examples": [4, 8, 0],
        "Most taken for": ["dog (1)", "", ""],
    }
