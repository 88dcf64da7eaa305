"""Does `rotbench gc` delete nothing before it is told to?"""

import json
from typing import Any

from store.status import Status

CONFIG = {"model": {"d_model": 8, "d_state": 8, "cell": "lru"}, "training": {"steps": 20, "warmup_steps": 2}}


def test_garbage_is_shown_and_only_deleted_when_asked(fresh: Any) -> None:
    with fresh.client() as client:
        ids = [client.submit(CONFIG).id for _ in range(3)]
        fresh.train(ids[0], status=Status.FAILED, reason="x")
        client.cancel(ids[1])
        shown = fresh.rotbench("gc", "--days", "0")
        assert "Would delete 2 runs" in shown.stdout
        assert len(list(client.runs())) == 3
        deleted = json.loads(fresh.rotbench("gc", "--days", "0", "--status", "failed", "--delete", "--json").stdout)
        assert (deleted["runs"], deleted["dry_run"]) == (1, False)
        assert {run.id for run in client.runs()} == set(ids[1:])
