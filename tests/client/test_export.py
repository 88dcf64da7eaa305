"""Does every float come home with all its bits, in files of equal rows that say where they come from?"""

import csv
import io
import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from client.errors import RotBenchError
from rotrnn_core import records
from store import export

ODD = [math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324, -2.2250738585072014e-308, 1.7976931348623157e308, 0.1, 1 / 3]
CONFIG = {
    "model": {"d_model": 8, "d_state": 8, "n_layers": 2, "cell": "lru"},
    "training": {"steps": 100, "warmup_steps": 0},
}
KINDS = ("csv", "json", "parquet")
EQUAL = settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def bits(values: Any) -> list[bytes]:
    """The values' bits, every NaN alike."""
    return [struct.pack("<d", math.nan if math.isnan(value) else value) for value in values]


def file_of(client: Any, what: str, kind: str, **filters: Any) -> tuple[bytes, dict[str, Any]]:
    sink = io.BytesIO()
    provenance = client.export(what, kind, sink, **filters)
    return sink.getvalue(), provenance


def rows_of(content: bytes, kind: str) -> list[dict[str, Any]]:
    """The file's rows, as a reader of that kind of file finds them."""
    if kind == "csv":
        return list(csv.DictReader(io.StringIO(content.decode())))
    if kind == "json":
        return [
            json.loads(line, parse_constant=lambda name: pytest.fail(f"bare {name}")) for line in content.splitlines()
        ]
    found: list[dict[str, Any]] = parquet.read_table(io.BytesIO(content)).to_pylist()
    return found


@given(st.lists(st.floats(), min_size=1, max_size=12))
@example(ODD)
@EQUAL
def test_every_float_survives_the_way_from_the_record_to_each_kind_of_file(fresh: Any, drawn: list[float]) -> None:
    with fresh.client() as client:
        run_id = client.submit(CONFIG).id
        values = [math.nan if math.isnan(value) else value for value in drawn]
        lines = [records.to_line(records.Evaluation(n, "validation", value, value)) for n, value in enumerate(values)]
        said = [records.from_line(line) for line in lines]
        points = [("validation_loss", each.step, each.loss) for each in said if isinstance(each, records.Evaluation)]
        norms = {step: [value, -value] for step, value in enumerate(values)}
        fresh.train(run_id, metrics=points, relative=norms)
        series = client.metrics(run_id)["validation_loss"]
        assert bits(series.values) == bits(values)
        for kind in KINDS:
            found = rows_of(file_of(client, "metrics", kind, run_id=run_id)[0], kind)
            assert bits(float(row["value"]) for row in found) == bits(values), kind
            traced = rows_of(file_of(client, "hidden-norms", kind, run_id=run_id, statistic="whole")[0], kind)
            expected = [signed for value in values for signed in (value, -value)]
            assert bits(float(row["mean"]) for row in traced) == bits(expected), kind
            assert [int(row["layer"]) for row in traced] == [0, 1] * len(values)


def test_the_three_kinds_hold_the_same_rows_and_say_where_they_come_from(seeded: Any) -> None:
    chosen = {"sweep_id": seeded.sweep_id, "cell": ["lru-learned"], "depth": 2}
    with seeded.service.client() as client:
        for what, number in (("runs", 3), ("metrics", 15), ("hidden-norms", 54)):
            files = {kind: file_of(client, what, kind, **chosen) for kind in KINDS}
            rows = {kind: rows_of(content, kind) for kind, (content, _) in files.items()}
            assert {len(found) for found in rows.values()} == {number}
            as_text = [
                [{name: str(value) if value is not None else "" for name, value in row.items()} for row in rows[kind]]
                for kind in ("json", "parquet")
            ]
            swap = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity", "True": "true", "False": "false"}
            for found in as_text:
                assert [{name: swap.get(value, value) for name, value in row.items()} for row in found] == rows["csv"]
            content, provenance = files["parquet"]
            inside = json.loads(parquet.read_schema(io.BytesIO(content)).metadata[b"rotbench"])
            assert inside == provenance
            assert provenance["what"] == what
            assert provenance["filters"] == {k: [v] if k == "depth" else v for k, v in chosen.items()}
            assert len(provenance["code_version"]) == 16
            assert provenance["queried_at"]


def test_a_run_says_on_what_it_was_trained(seeded: Any) -> None:
    with seeded.service.client() as client:
        rows = rows_of(file_of(client, "runs", "json", run_id=seeded.diverged)[0], "json")
    assert [(row["host"], json.loads(row["environment"])) for row in rows] == [("box", {"torch": "none"})]
    assert json.loads(rows[0]["config"])["model"]["n_layers"] == rows[0]["depth"]


def test_batches_join_without_a_gap_or_a_double(seeded: Any) -> None:
    with seeded.service.sessions() as session:
        chosen = export.choose(session, export.Filters(run_id=seeded.diverged))
    (run,) = chosen.runs
    whole = [vars(b) for b in export.points(seeded.service.sessions, run.run_id)]
    cut = [vars(b) for b in export.points(seeded.service.sessions, run.run_id, batch=2)]
    assert len(cut) > len(whole) == 1
    for name in ("key", "step", "attempt"):
        assert [value for batch in cut for value in batch[name]] == whole[0][name]
    for statistic in records.STATISTICS:
        norms = [list(export.norms(seeded.service.sessions, run.run_id, statistic, batch=size)) for size in (1, 10_000)]
        for name in ("layer", "step"):
            one, other = (np.concatenate([getattr(batch, name) for batch in batches]) for batches in norms)
            assert one.tolist() == other.tolist()


def test_the_command_line_writes_each_kind_with_its_provenance_beside_it(seeded: Any, tmp_path: Path) -> None:
    for kind in KINDS:
        file = tmp_path / f"norms.{kind}"
        result = seeded.service.rotbench("export", "hidden-norms", "--format", kind, "--depth", "2", "-o", str(file))
        assert (result.exit_code, result.stdout) == (0, ""), result.output
        assert {int(row["depth"]) for row in rows_of(file.read_bytes(), kind)} == {2}
        beside = json.loads(Path(f"{file}.provenance.json").read_text())
        assert beside["filters"] == {"depth": [2]}


def test_what_cannot_be_exported_is_refused_in_words(seeded: Any) -> None:
    with seeded.service.client() as client:
        for what, kind in (("everything", "csv"), ("runs", "xls")):
            with pytest.raises(RotBenchError, match=r"what|kind"):
                file_of(client, what, kind)
