"""Does `rotbench diff` name every field in which two runs differ, and no other?"""

import json
from typing import Any

from client.cli.difference import leaves


def test_two_runs_differ_in_what_was_set_and_what_came_of_it(seeded: Any) -> None:
    with seeded.service.client() as client:
        run = client.run(seeded.diverged)
        same = list(client.runs(sweep_id=seeded.sweep_id, cell=run.cell, depth=run.depth, status="succeeded"))
    other = next(one for one in same if one.seed != run.seed)
    result = seeded.service.rotbench("diff", seeded.diverged, other.id, "--json")
    assert result.exit_code == 0, result.output
    found = {(one["where"], one["field"]): (one["first"], one["second"]) for one in json.loads(result.stdout)["items"]}
    assert found["result", "status"] == ("diverged", other.status)
    config = {field for where, field in found if where == "config"}
    assert config == {"training.seed"}
    assert not [field for where, field in found if where == "environment"]


def test_a_run_does_not_differ_from_itself(seeded: Any) -> None:
    result = seeded.service.rotbench("diff", seeded.diverged, seeded.diverged)
    assert "equal in configuration, environment and result" in result.stdout


def test_leaves_name_every_value_by_its_dotted_field() -> None:
    assert leaves({"a": {"b": 1, "c": {"d": [2]}}, "e": None}) == {"a.b": 1, "a.c.d": [2], "e": None}
