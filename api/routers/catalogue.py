"""What can a run name? Tasks, cells and recipes."""

import dataclasses

from fastapi import APIRouter

from api.catalogue import labels, options
from api.catalogue_schemas import ModelList, ModelRead, OptionRead, RecipeList, RecipeRead, TaskList, TaskRead
from api.documentation import problems
from rotrnn_core.catalogue import TASKS, TaskInfo
from rotrnn_core.cells import CELLS
from rotrnn_core.published import published
from rotrnn_core.recipes import RECIPES

router = APIRouter(prefix="/v1", tags=["catalogue"])


@router.get("/tasks", responses=problems(401), summary="List tasks")
def list_tasks() -> TaskList:
    """The data sets that runs can train on, with their floors and with what others have reported."""
    return TaskList(items=[_task(task) for task in TASKS.values()])


def _task(task: TaskInfo) -> TaskRead:
    reported = [dataclasses.asdict(figure) for figure in published(task.name)]
    return TaskRead.model_validate(dataclasses.asdict(task) | {"published": reported})


@router.get("/models", responses=problems(401), summary="List cells")
def list_models() -> ModelList:
    """The recurrent cells, their variants and their options."""
    return ModelList(
        items=[
            ModelRead(
                name=name,
                title=cell.title,
                summary=cell.summary,
                labels=list(labels(cell)),
                options=[OptionRead.model_validate(option) for option in options(cell)],
            )
            for name, cell in CELLS.items()
        ]
    )


@router.get("/recipes", responses=problems(401), summary="List recipes")
def list_recipes() -> RecipeList:
    """Complete configurations with their source."""
    return RecipeList(
        items=[
            RecipeRead(name=r.name, title=r.title, source=r.source, mark=r.mark, config=r.config.to_dict())
            for r in RECIPES.values()
        ]
    )
