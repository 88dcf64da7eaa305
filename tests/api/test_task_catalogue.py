"""Does the list of tasks say what each takes to beat, and what others have reported, with source and mark?"""

import dataclasses

import pytest

from api.routers.catalogue import list_tasks
from rotrnn_core.catalogue import TASKS
from rotrnn_core.published import PUBLISHED


def test_every_task_is_listed_with_all_that_is_known_of_it() -> None:
    listed = {task.name: task for task in list_tasks().items}
    assert list(listed) == list(TASKS)
    for name, info in TASKS.items():
        shown = listed[name].model_dump()
        known = dataclasses.asdict(info)
        assert {key: shown[key] for key in shown if key in known} == {key: known[key] for key in shown if key in known}


def test_published_figures_stand_with_their_task_the_highest_first() -> None:
    listed = {task.name: task.published for task in list_tasks().items}
    assert sum(map(len, listed.values())) == len(PUBLISHED)
    assert [figure.model for figure in listed["path-x"]][-1] == "Transformer"
    assert listed["path-x"][-1].accuracy is None
    (rotrnn,) = (figure for figure in listed["listops"] if figure.model == "RotRNN")
    assert (rotrnn.accuracy, rotrnn.mark) == (0.611, "U")
    (lru,) = listed["image-colour"]
    assert (lru.accuracy, lru.standard_error, lru.mark) == (0.89, 0.001, "S")


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.stand_in])
def test_a_stand_in_has_no_published_figures(name: str) -> None:
    (task,) = (task for task in list_tasks().items if task.name == name)
    assert task.published == []
