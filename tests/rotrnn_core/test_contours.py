"""Is a picture of contours what its label says, and the same for the same seed?"""

import numpy as np
import pytest

from rotrnn_core.tasks import contours


@pytest.fixture(scope="module")
def drawn() -> tuple[np.ndarray, np.ndarray]:
    return contours.draw(3, 0, 300)


def test_half_of_the_pictures_have_both_dots_on_one_line(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    assert 0.4 < drawn[1].mean() < 0.6


def reaches(picture: np.ndarray) -> bool:
    """Whether ink leads from one dot to the other; gaps between dashes are bridged, distances between lines are not."""
    ink = picture > 0
    dots = np.argwhere(picture >= 254)
    seen = {tuple(dots[0])}
    todo = [tuple(dots[0])]
    while todo:
        y, x = todo.pop()
        for place in ((y + dy, x + dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)):
            if place not in seen and min(place) >= 0 and max(place) < contours.SIDE and ink[place]:
                seen.add(place)
                todo.append(place)
    return all(tuple(dot) in seen for dot in dots)


def test_a_line_that_both_dots_end_leads_from_one_to_the_other(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    found = [reaches(picture) for picture, label in zip(*drawn, strict=True) if label]
    assert np.mean(found) > 0.95
    others = [reaches(picture) for picture, label in zip(*drawn, strict=True) if not label]
    assert np.mean(others) < 0.5


def test_pictures_depend_on_seed_and_place_alone(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    pictures, labels = contours.draw(3, 100, 50)
    np.testing.assert_array_equal(pictures, drawn[0][100:150])
    np.testing.assert_array_equal(labels, drawn[1][100:150])
    assert (contours.draw(4, 0, 50)[0] != drawn[0][:50]).any()
    assert len({picture.tobytes() for picture in drawn[0]}) == 300


def test_a_larger_train_split_leaves_the_others_as_they_are() -> None:
    small = contours.generate(0, train=4, validation=3, test=2)
    large = contours.generate(0, train=9, validation=3, test=2)
    np.testing.assert_array_equal(small.test.inputs, large.test.inputs)
    np.testing.assert_array_equal(small.validation.inputs, large.validation.inputs)
    np.testing.assert_array_equal(small.train.inputs, large.train.first(4).inputs)
