"""Which fields has the form? Recipe, cells with their options, task, and every setting of a run."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from client import CellModel, ModelOption, Recipe, Task
from dashboard import choices, shell
from dashboard.connection import line
from dashboard.grids import name_of
from dashboard.orders import Order, cells_of, leaves, order
from dashboard.palette import cell_title
from dashboard.words import plain, plural

DEFAULTS = "Defaults"
FIRST = ("model.n_layers", "training.seed", "training.steps", "model.d_model", "model.d_state")
"""The settings that stand open; the others are behind a line."""
MARKS = {"S": "sourced", "D": "derived", "U": "unverified"}
MATCHES = {"d state": None, "parameters": "parameters", "operations": "flops"}
SEVERAL = "Several values with commas, such as 1, 2, 4, or a range such as 0-4, make a sweep of all combinations."


def form(recipes: Sequence[Recipe], models: Sequence[CellModel], tasks: Sequence[Task]) -> Order | None:
    """Draw the form; returns what it asks for, None while the defaults are not known."""
    recipe = _recipe(recipes)
    base = recipe.config if recipe else _defaults()
    if base is None:
        return None
    texts: dict[str, str] = {}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        cells = _cells(models, base)
        task = _task(tasks, base)
        if task:
            texts["task.name"] = task
    options = _options([model for model in models if model.name in cells])
    known = dict(leaves(base))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        for name in FIRST:
            texts[name] = _field(name, known.get(name), width=150)
    texts |= _others({name: value for name, value in known.items() if name not in (*FIRST, "task.name")})
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        name = st.text_input("Name", key="name", bind="query-params", placeholder="for people", width=260)
        priority = st.segmented_control(
            "Priority", ["low", "normal", "high"], key="priority", bind="query-params", default="normal", required=True
        )
        match = st.segmented_control(
            "Equal in all cells",
            list(MATCHES),
            key="match",
            bind="query-params",
            default="d state",
            required=True,
            help="In a sweep over cells: **d state** leaves sizes as they are; **parameters** and **operations** give "
            "each cell the d state that brings its layers nearest to those of the first cell.",
        )
        reuse = st.toggle(
            "Take over runs that exist",
            key="reuse",
            bind="query-params",
            help="In a sweep, runs with the same configuration and code are not trained again.",
        )
    return order(
        recipe.name if recipe else None,
        base if recipe else {},
        {field: text for field, text in texts.items() if text.strip()},
        cells_of([model for model in models if model.name in cells], options),
        name=name.strip() or None if name else None,
        priority=priority if priority != "normal" else None,
        reuse=reuse,
        match=MATCHES.get(match or ""),
    )


def _recipe(recipes: Sequence[Recipe]) -> Recipe | None:
    by_name = {recipe.name: recipe for recipe in recipes}
    choices.begin("recipe", DEFAULTS, [DEFAULTS, *by_name])
    picked = st.selectbox(
        "Begin with",
        [DEFAULTS, *by_name],
        index=None,
        key="recipe",
        bind="query-params",
        width=560,
        format_func=lambda name: f"{name}: {by_name[name].title}" if name in by_name else name,
        help="A complete configuration with its source. What you leave empty below stays as it has it.",
    )
    recipe = by_name.get(picked or "")
    if recipe is None:
        st.caption("The defaults of this version. What you leave empty below stays as they have it.")
        return None
    st.caption(f"Source: {plain(recipe.source)} ({MARKS.get(recipe.mark, recipe.mark)}).")
    return recipe


def _defaults() -> dict[str, Any] | None:
    """The complete default configuration, as the API fills one in."""
    answer = line().ask("defaults", lambda bench: bench.plan_sweep({}, {"training.seed": [0]}), fresh_s=600.0)
    if answer.value is None or not answer.value.configs_preview:
        shell.no_answer(answer)
        return None
    return answer.value.configs_preview[0]


def _cells(models: Sequence[CellModel], base: Mapping[str, Any]) -> list[str]:
    titles = {model.name: model.title for model in models}
    own = base.get("model", {}).get("cell", {}).get("name", "")
    picked = st.multiselect(
        "Cells",
        list(titles),
        key="cells",
        bind="query-params",
        format_func=lambda name: titles.get(name, name),
        placeholder=cell_title(own),
        width=330,
        help="\n\n".join(f"**{model.title}**: {plain(model.summary)}" for model in models),
    )
    return list(picked)


def _task(tasks: Sequence[Task], base: Mapping[str, Any]) -> str | None:
    by_name = {task.name: task for task in tasks}
    own = str(base.get("task", {}).get("name", ""))
    picked = st.selectbox(
        "Task",
        list(by_name),
        index=None,
        key="task",
        bind="query-params",
        format_func=lambda name: by_name[name].title if name in by_name else name,
        placeholder=by_name[own].title if own in by_name else own,
        width=250,
        help="\n\n".join(f"**{task.title}**: {plain(task.summary)}" for task in tasks),
    )
    return str(picked) if picked else None


def _options(models: Sequence[CellModel]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for model in models:
        if model.options:
            with (
                st.expander(f"Options of {model.title}", icon=":material/tune:"),
                st.container(horizontal=True, vertical_alignment="bottom", gap="small"),
            ):
                for option in model.options:
                    texts[f"{model.name}.{option.name}"] = _option(model, option)
    return texts


def _option(model: CellModel, option: ModelOption) -> str:
    key, label = f"{model.name}.{option.name}", option.name.replace("_", " ")
    offered = option.choices or ((True, False) if option.type == "true or false" else None)
    if offered:
        picked = st.multiselect(
            label,
            [_json(choice) for choice in offered],
            key=key,
            bind="query-params",
            placeholder=_json(option.default),
            width=230,
            help=f"Several make several cells. Default: {_json(option.default)}.",
        )
        return ", ".join(picked)
    return st.text_input(label, key=key, bind="query-params", placeholder=_json(option.default), width=150) or ""


def _field(name: str, value: Any, *, width: int) -> str:
    said = "the task's own" if value is None else _json(value)
    return (
        st.text_input(
            name_of(name), key=name, bind="query-params", placeholder=said, width=width, help=f"`{name}`. {SEVERAL}"
        )
        or ""
    )


def _others(known: Mapping[str, Any]) -> dict[str, str]:
    texts: dict[str, str] = {}
    changed = [name for name in known if st.session_state.get(name)]
    title = "All other settings" + (f" ({plural(len(changed), 'changed', 'changed')})" if changed else "")
    with st.expander(title, icon=":material/tune:"):
        for part in dict.fromkeys(name.partition(".")[0] for name in known):
            st.markdown(f"**{part.capitalize()}**")
            with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
                for name, value in known.items():
                    if name.startswith(f"{part}."):
                        texts[name] = _field(name, value, width=190)
    return texts


def _json(value: Any) -> str:
    """A value as one would type it."""
    if isinstance(value, str):
        return value
    return f"{value:g}" if isinstance(value, float) else json.dumps(value)
