"""Does every mutant of the mutation check still find the text that it breaks, and the tests that must notice?"""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def mutants_module() -> Any:
    """The script, which is no part of a package."""
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "benchmarks" / "mutants.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


mutants = mutants_module()
MUTANTS = mutants.mutants()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_finds_its_text_once_and_changes_it(mutant: Any) -> None:
    assert mutants.stands_once(mutant), f"{mutant.old!r} in {mutant.file}"
    assert mutant.old != mutant.new
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert f"def {name}" in (Path(__file__).parent / file).read_text(encoding="utf-8")


def test_there_are_many_mutants_with_names_of_their_own() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(names) == len(set(names)) >= 25
