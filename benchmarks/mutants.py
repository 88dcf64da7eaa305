"""Would the tests notice if the mathematics were wrong? Small errors, one at a time, in a copy; each must be killed.

    python benchmarks/mutants.py [--only NAME ..] [--json]

Each mutant, a line of mutants.tsv, replaces one text in one file of rotrnn_core. It is killed when one of its tests
fails, survives when all of them pass, and is broken when they cannot run. Exit code 1 when one survives or is broken.
"""

import argparse
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS_FAILED = 1
LIMIT_S = 600
LOADED_ONCE = ("torch", "scipy.special", "scipy.stats", "hypothesis")
"""What every child would otherwise load anew."""


@dataclass(frozen=True)
class Mutant:
    """An error: in which file of rotrnn_core, what stands there, what would stand there, and who must notice."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def mutants() -> list[Mutant]:
    """Those of mutants.tsv: name, file, old text, new text, tests apart by spaces."""
    lines = (ROOT / "benchmarks" / "mutants.tsv").read_text(encoding="utf-8").splitlines()[1:]
    columns = [line.split("\t") for line in lines]
    return [Mutant(name, file, old, new, tuple(tests.split())) for name, file, old, new, tests in columns]


def stands_once(mutant: Mutant) -> bool:
    """Whether the text that a mutant replaces is there, and nowhere else in its file."""
    return (ROOT / "rotrnn_core" / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1


def outcome(mutant: Mutant, copy: Path) -> str:
    """Put the error into the copy, run its tests, and take it out again."""
    path = copy / "rotrnn_core" / mutant.file
    right = path.read_text(encoding="utf-8")
    path.write_text(right.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        code = run_tests(mutant.tests, copy)
    finally:
        path.write_text(right, encoding="utf-8")
    return {0: "survived", TESTS_FAILED: "killed"}.get(code, "broken")


def run_tests(tests: tuple[str, ...], copy: Path) -> int:
    """pytest's exit code, from a child that finds torch loaded already; -1 after ten minutes."""
    child = os.fork()
    if child == 0:
        _become_pytest(tests, copy)
    ends = time.monotonic() + LIMIT_S
    while time.monotonic() < ends:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


def _become_pytest(tests: tuple[str, ...], copy: Path) -> None:
    code = 3
    try:
        import pytest

        os.chdir(copy)
        sys.path.insert(0, str(copy))
        sys.dont_write_bytecode = True
        with open(copy / "output.txt", "w", encoding="utf-8") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            where = [f"tests/rotrnn_core/{test}" for test in tests]
            # Without the shape checks of every call, which would only slow the search.
            options = ["-x", "-q", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib"]
            code = int(pytest.main([*options, *where]))
    finally:
        os._exit(code)


def main() -> int:
    """Run the mutants, after the tests without any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=[mutant.name for mutant in mutants()], help="These alone.")
    parser.add_argument("--json", action="store_true", help="One JSON object on stdout.")
    asked = parser.parse_args()
    chosen = [mutant for mutant in mutants() if asked.only is None or mutant.name in asked.only]
    for name in LOADED_ONCE:
        importlib.import_module(name)
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for part in ("rotrnn_core", "tests/rotrnn_core"):
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        every = tuple(sorted({test for mutant in chosen for test in mutant.tests}))
        if run_tests(every, copy) != 0:
            sys.stderr.write((copy / "output.txt").read_text(encoding="utf-8")[-3000:])
            sys.stderr.write("The tests fail without any mutant.\n")
            return 1
        for mutant in chosen:
            found[mutant.name] = outcome(mutant, copy)
            sys.stderr.write(f"{found[mutant.name]:<9} {mutant.name} ({mutant.file})\n")
    alive = [name for name, ended in found.items() if ended != "killed"]
    if asked.json:
        sys.stdout.write(json.dumps({"mutants": len(found), "killed": len(found) - len(alive), "alive": alive}) + "\n")
    else:
        sys.stdout.write(f"{len(found) - len(alive)} of {len(found)} mutants killed\n")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
