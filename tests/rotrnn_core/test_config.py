"""Does a configuration hold what was given, and refuse what cannot be right in words that help?"""

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rotrnn_core.config import CELLS, TASKS, ConfigError, ModelConfig, RunConfig, TaskConfig, TrainingConfig
from rotrnn_core.recipes import RECIPES, demo_sweep


def run_with(path: str, value: object) -> dict[str, object]:
    """A configuration in which only the field at a dotted path is given."""
    given: object = value
    for name in reversed(path.split(".")):
        given = {name: given}
    assert isinstance(given, dict)
    return given


def test_nothing_given_is_a_complete_run() -> None:
    assert RunConfig.from_dict({}) == RunConfig()


@given(
    cell=st.sampled_from(["rotrnn", "lru"]),
    layers=st.integers(1, 12),
    seed=st.integers(0, 2**53 - 1),
    rate=st.floats(1e-6, 1.0),
    dropout=st.floats(0, 0.99),
    size=st.none() | st.integers(1, 1000),
)
def test_a_run_survives_the_way_through_json(
    cell: str, layers: int, seed: int, rate: float, dropout: float, size: int | None
) -> None:
    run = RunConfig.from_dict(
        {
            "task": {"train_size": size},
            "model": {"cell": cell, "n_layers": layers, "dropout": dropout},
            "training": {"seed": seed, "learning_rate": rate, "final_learning_rate": 0},
        }
    )
    assert RunConfig.from_dict(json.loads(json.dumps(run.to_dict(), allow_nan=False))) == run


@pytest.mark.parametrize(
    ("path", "value", "remedy"),
    [
        ("colour", "red", "known fields are task, model, training, probe"),
        ("model.width", 3, "known fields are cell, d_model"),
        ("model", 3, "object of named fields"),
        ("model.cell.name", "mamba", "known cells are"),
        ("model.cell", ["lru"], "a cell's name"),
        ("model.cell.name", None, "known cells are"),
        ("model.cell.first_step", "second", "use one of exact, authors"),
        ("model.cell.n_heads", 0, "at least 1"),
        ("model.cell.decay_min", 0.0, "smallest usable value is 1e-9"),
        ("model.cell.decay_min", 0.9995, "below decay_max"),
        ("model.cell.decay_max", 1.0, "below 1"),
        ("model.cell.max_phase", -1, "positive angle"),
        ("model.d_model", -64, "whole number in [1, 8192]"),
        ("model.d_model", 64.5, "whole number"),
        ("model.d_model", True, "whole number"),
        ("model.d_state", 60, "divisible by 2 * n_heads = 16"),
        ("model.dropout", float("nan"), "finite number"),
        ("model.dropout", 1, "[0, 1)"),
        ("model.bidirectional", 1, "true or false"),
        ("model.gate", "none", "full_glu"),
        ("task.name", "imagenet", "known tasks are"),
        ("task.train_size", 10**9, "[1, 200000]"),
        ("task.data_seed", -1, "[0, 2**53)"),
        ("training.learning_rate", float("inf"), "finite number"),
        ("training.learning_rate", 10**400, "finite number"),
        ("training.learning_rate", "fast", "use a number"),
        ("training.final_learning_rate", 1.0, "learning_rate"),
        ("training.steps", 0, "[1, 10000000]"),
        ("training.warmup_steps", 400, "[0, steps = 400)"),
        ("training.seed", 2**53, "[0, 2**53)"),
        pytest.param("training.seed", 10**5000, "[0, 2**53)", id="endless"),
        ("training.device", "tpu", "auto, cpu, cuda"),
        ("probe.every", 0, "[1, 10000000]"),
        ("probe.positions", 65, "[1, 64]"),
    ],
)
def test_a_bad_value_is_refused_with_field_value_and_remedy(path: str, value: object, remedy: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RunConfig.from_dict(run_with(path, value))
    assert caught.value.field == path
    assert caught.value.value is value or caught.value.value == value
    assert remedy in caught.value.remedy
    assert str(caught.value).startswith(f"{path} is ")


def test_values_are_checked_also_without_from_dict() -> None:
    with pytest.raises(ConfigError, match=r"training\.learning_rate is nan"):
        TrainingConfig(learning_rate=float("nan"))
    with pytest.raises(ConfigError, match=r"model\.d_state is 62"):
        ModelConfig(d_state=62)


def test_a_whole_number_where_a_float_belongs_becomes_one() -> None:
    run = RunConfig.from_dict({"training": {"learning_rate": 1}})
    assert isinstance(run.training.learning_rate, float)


def test_labels_tell_the_variants_apart() -> None:
    def label(**cell: object) -> str:
        return RunConfig.from_dict({"model": {"cell": cell}}).model.cell.label

    assert label(name="rotrnn") == "rotrnn"
    assert label(name="rotrnn", first_step="authors") == "rotrnn-authors"
    assert label(name="rotrnn", init="ring") == "rotrnn-ring"
    assert label(name="lru") == "lru-learned"
    assert label(name="lru", normaliser="tied") == "lru-tied"


@pytest.mark.parametrize("name", sorted(TASKS))
def test_a_size_left_out_is_the_tasks_own(name: str) -> None:
    assert TaskConfig(name=name).size("validation") == TASKS[name].validation_size
    assert TaskConfig(name=name, validation_size=7).size("validation") == 7


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_a_recipe_is_a_complete_run_that_names_its_source(name: str) -> None:
    recipe = RECIPES[name]
    assert recipe.name == name
    assert recipe.source
    assert RunConfig.from_dict(recipe.config.to_dict()) == recipe.config
    assert recipe.config.task.name == name.split("/")[0]


def test_the_demo_sweeps_three_cells_three_depths_and_three_seeds() -> None:
    sweep = json.loads(json.dumps(demo_sweep(), allow_nan=False))
    labels = set()
    for cell in sweep["grid"]["model.cell"]:
        sweep["config"]["model"]["cell"] = cell
        labels.add(RunConfig.from_dict(sweep["config"]).model.cell.label)
    assert labels == {"rotrnn", "lru-learned", "lru-tied"}
    assert {len(values) for values in sweep["grid"].values()} == {3}
    assert set(CELLS) >= {"rotrnn", "lru"}


def test_configuration_records_and_recipes_need_no_torch() -> None:
    lines = "import sys, rotrnn_core.config, rotrnn_core.records, rotrnn_core.recipes; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", lines], check=False, timeout=60).returncode == 0
