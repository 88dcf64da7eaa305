"""Do the commands in the README and in docs/ do what they say?"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
OF_A_MACHINE = ("make ", "docker compose", "box:8000")
"""Blocks that install, train for minutes, or need Docker or another host; tests of their own run these."""


def _blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / document).read_text(), flags=re.DOTALL)


def _runnable(document: str) -> list[str]:
    return [block for block in _blocks(document, "sh") if not any(word in block for word in OF_A_MACHINE)]


@pytest.fixture
def folder(stack: Any, tmp_path: Path) -> Path:
    """A folder that looks like a clone in which the demo has run."""
    (tmp_path / ".rotbench").symlink_to(stack.data_dir)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    return tmp_path


def _run(command: list[str], folder: Path, stdin: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("ROTBENCH_")}
    env |= {"PATH": f"{Path(sys.executable).parent}:{env['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=folder, env=env, input=stdin, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, f"{stdin}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
@pytest.mark.xdist_group("stack")
def test_the_readmes_first_five_minutes_work_as_written(folder: Path) -> None:
    commands = "\n".join(_runnable("README.md"))
    assert "rotbench submit" in commands
    assert "curl" in commands
    out = _run(["bash", "-euo", "pipefail"], folder, commands)
    assert '"name":"from curl"' in out.replace(": ", ":")
    (python,) = _blocks("README.md", "python")
    out = _run([sys.executable, "-"], folder, python)
    assert "rotrnn" in out
    assert "lru-tied" in out
    assert "n = 2" in out


@pytest.mark.parametrize("document", ["docs/equivalence.md"])
def test_python_in_the_documents_runs(document: str, tmp_path: Path) -> None:
    for block in _blocks(document, "python"):
        _run([sys.executable, "-"], tmp_path, block)


@pytest.mark.parametrize("document", ["README.md", *sorted(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))])
def test_every_link_and_every_file_that_a_document_names_exists(document: str) -> None:
    text = (ROOT / document).read_text()
    for target in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert ((ROOT / document).parent / target).exists(), target
    for named in re.findall(r"`((?:rotrnn_core|store|worker|api|client|dashboard|deploy)/[\w/.]*)`", text):
        assert (ROOT / named).exists(), named


def test_every_make_target_that_a_document_names_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for document in ("README.md", "docs/deployment.md", "docs/architecture.md"):
        for target in re.findall(r"`?make ([a-z]+)", (ROOT / document).read_text()):
            assert target in targets, target
