"""Does the form ask for what stands in it, and do the three copies say the same?"""

import json
import shlex
from typing import Any

import pytest

from client import CellModel, ModelOption
from client.cli.wishes import grid as cli_grid
from client.cli.wishes import parsed, set_field
from dashboard import commands
from dashboard.orders import Order, cells_of, leaves, order, values_of

BASE = {
    "task": {"name": "listops-short"},
    "model": {"cell": {"name": "rotrnn", "n_heads": 4}, "d_model": 32, "n_layers": 2},
    "training": {"seed": 0, "steps": 200},
}
LRU = CellModel(
    "lru",
    "LRU",
    "",
    ("lru-learned", "lru-tied"),
    (ModelOption("normaliser", "choice", "learned", ("learned", "tied")), ModelOption("r_max", "number", 0.99)),
)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", []),
        (" , ", []),
        ("3", [3]),
        ("1, 2,4", [1, 2, 4]),
        ("0-3", [0, 1, 2, 3]),
        ("0-1, 7", [0, 1, 7]),
        ("1e-3, .5", [0.001, ".5"]),
        ("true, none", [True, "none"]),
        ("NaN", ["NaN"]),
        ("5-1", ["5-1"]),
        ("layer", ["layer"]),
    ],
)
def test_a_field_holds_values_between_commas(text: str, values: list[Any]) -> None:
    assert values_of(text) == values


def test_one_value_is_a_setting_and_several_are_an_axis_that_leaves_the_base() -> None:
    made = order("r", BASE, {"training.steps": "50", "training.seed": "0-2", "model.d_model": ""})
    assert (made.settings, made.grid) == ({"training.steps": 50}, {"training.seed": [0, 1, 2]})
    assert made.config["training"] == {"steps": 50}
    assert made.config["model"] == BASE["model"]
    assert BASE["training"] == {"seed": 0, "steps": 200}


def test_an_option_with_several_values_makes_several_cells() -> None:
    cells = cells_of([LRU], {"lru.normaliser": "learned, tied", "lru.r_max": "0.9"})
    assert cells == [
        {"name": "lru", "normaliser": "learned", "r_max": 0.9},
        {"name": "lru", "normaliser": "tied", "r_max": 0.9},
    ]
    assert cells_of([LRU], {}) == [{"name": "lru"}]
    assert order(None, {}, {}, cells).grid == {"model.cell": cells}
    assert order(None, {}, {}, cells[:1]).config == {"model": {"cell": cells[0]}}


def test_every_field_but_the_cell_is_a_leaf() -> None:
    assert dict(leaves(BASE))["training.steps"] == 200
    assert not [name for name in dict(leaves(BASE)) if name.startswith("model.cell")]


ORDERS = [
    Order("a/b", BASE, {"training.steps": 50}, {}, "it's <mine>", "high"),
    Order(None, {}, {}, {"training.seed": [0, 1], "model.cell": [{"name": "lru"}, {"name": "s5"}]}, reuse=True),
    Order(
        None,
        {},
        {"model.gate": "gelu", "model.bidirectional": True},
        {"training.learning_rate": [1e-3, 3e-3]},
        match="flops",
    ),
]


@pytest.mark.parametrize("wanted", ORDERS)
def test_the_command_line_means_what_is_sent(wanted: Order) -> None:
    words = shlex.split(commands.command_line(wanted).replace("\\\n", " "))
    given: dict[str, list[str]] = {}
    for option, value in zip(words, [*words[1:], ""], strict=True):
        if option.startswith("--"):
            given.setdefault(option, []).append(value)
    config = wanted.base if wanted.recipe else {}
    for setting in given.get("--set", []):
        name, _, text = setting.partition("=")
        config = set_field(config, name, parsed(text))
    assert words[1] == ("sweep" if wanted.grid else "submit")
    assert cli_grid(given.get("--grid", []), None) == wanted.grid
    for name in wanted.grid:
        part, _, field = name.partition(".")
        config = {**config, part: {k: v for k, v in config.get(part, {}).items() if k != field}}
    assert {k: v for k, v in config.items() if v} == wanted.config
    assert ("--reuse" in words) == wanted.reuse
    assert given.get("--name", [None])[0] == wanted.name
    assert given.get("--match", [None])[0] == wanted.match


@pytest.mark.parametrize("wanted", ORDERS)
def test_curl_sends_the_body_and_python_is_python_with_the_same_values(wanted: Order) -> None:
    words = shlex.split(commands.curl(wanted).replace("\\\n", " "))
    assert json.loads(words[words.index("--data") + 1]) == json.loads(json.dumps(commands.body(wanted)))
    assert f"/v1/{'sweeps' if wanted.grid else 'runs'}" in words[4]
    lines: dict[str, Any] = {}
    source = commands.python(wanted)
    compile(source, "shown", "exec")
    exec(source.split("\n\nwith")[0].split("\n\n", 1)[1], lines)
    assert ('match="flops"' in source) == (wanted.match == "flops")
    assert lines["config"] == wanted.config
    assert lines.get("grid", {}) == wanted.grid
