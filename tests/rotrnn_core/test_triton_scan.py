"""Is the GPU scan the definition, and is its machine code what it was written to be? Both without a GPU."""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton")

HERE = Path(__file__).parent
KINDS = ["forward float32", "backward float32", "ends bfloat16"]
CASES = [
    "one step",
    "a tail",
    "backwards",
    "from zero",
    "chunks",
    "chunks backwards",
    "chunks from zero",
    "two blocks of pairs",
    "strided",
]


def answer_of(script: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The object that a script beside this file prints, asked for once by all processes of a test run."""
    own = tmp_path_factory.getbasetemp()
    folder = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with (folder / f"{script}.json").open("a+") as answer:
        fcntl.flock(answer, fcntl.LOCK_EX)
        answer.seek(0)
        text = answer.read()
        if not text:
            text = output_of(script, cache=own / "triton")
            answer.write(text)
            answer.flush()
    return json.loads(text)


def output_of(script: str, cache: Path) -> str:
    root = HERE.parents[1]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", HERE / script],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1", "TRITON_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return answer_of("triton_interpreted.py", tmp_path_factory)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return answer_of("triton_compiled.py", tmp_path_factory)


@pytest.mark.parametrize("case", CASES)
def test_the_gpu_scan_is_the_definition_with_every_gradient(interpreted: Any, case: str) -> None:
    errors = interpreted["errors"][case]
    assert {"states", "drive", "decay", "phase"} <= errors.keys()
    assert max(errors.values()) < 2e-6, errors


def test_the_same_call_gives_the_same_bits(interpreted: Any) -> None:
    assert interpreted["differing"] == []


def test_half_precision_in_and_out_is_rounded_once_at_each_end(interpreted: Any) -> None:
    errors = interpreted["errors"]["bfloat16"]
    assert max(errors.values()) < 2**-7, errors
    assert errors["states"] > 1e-4, "nothing was rounded to bfloat16"


def test_a_slow_pair_does_not_drift_by_the_rounding_of_its_eigenvalue(interpreted: Any) -> None:
    assert interpreted["slow_pair"] < 3e-6


def test_what_the_gpu_scan_does_not_serve_is_refused(interpreted: Any, compiled: Any) -> None:
    refusals = interpreted["refusals"]
    assert "(0, 3, 4)" in refusals["empty"]
    assert "(1, 0, 4)" in refusals["no step"]
    assert "float64" in refusals["float64"]
    assert "differentiate twice" in refusals["twice"]
    assert "CUDA" in compiled["refusal"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_compiled_scan_keeps_everything_in_registers(compiled: Any, kind: str) -> None:
    code = compiled["code"][kind]
    assert code["stack"] == 0, code
    assert code["shared"] == 0, code
    assert not [name for name in code["memory"] if name.startswith(("LDL", "STL", "LDS", "STS", "SHFL", "BAR"))], code


@pytest.mark.parametrize(("kind", "suffix", "rows"), [("forward float32", "", 64), ("ends bfloat16", ".U16", 64)])
def test_each_row_of_a_tile_is_one_load_of_neighbouring_lanes(compiled: Any, kind: str, suffix: str, rows: int) -> None:
    """Two tiles, the first and the prefetched one, of two components each: no row is fetched in parts."""
    loads = compiled["code"][kind]["memory"][f"LDG.E{suffix}"]
    assert 2 * rows <= loads <= 2 * rows + 24, compiled["code"][kind]
