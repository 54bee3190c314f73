# Everything runs from .venv, which `make setup` makes from pinned versions. All it needs is Python 3.11+ and make.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
FROM_SOURCE := airflow_provider_viewdf dags demo bench tests
# Those of them that exist.
SOURCE = $(wildcard $(FROM_SOURCE))
# More arguments for pytest: make test ARGS="-k late -x"
ARGS ?=
# How many processes share the tests. One is enough for a few of them, and shows what they print: WORKERS=0
WORKERS ?= 2

# The first Python of these that is new enough and can make virtual environments; shims that lead nowhere are passed over.
FIND_PYTHON = for python in $(PYTHON) python3 python3.13 python3.12 python3.11 python; do \
	if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	then echo "$$python"; break; fi; done

# Without compiled bytecode every process of Airflow and Spark starts slower.
unexport PYTHONDONTWRITEBYTECODE
unexport PYTHONHOME

.PHONY: help setup demo test soak bench check format clean
.DEFAULT_GOAL := help

help:  ## show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1@/p' Makefile | awk -F@ '{ printf "%-14s %s\n", $$1, $$2 }'

setup: $(STAMP)  ## make .venv with everything in it

$(STAMP): pyproject.toml constraints.txt
	@python=$$($(FIND_PYTHON)); \
	if [ -z "$$python" ]; then \
		echo "Python 3.11 or newer with venv and pip is needed, and none was found: install one (on Debian: apt install python3 python3-venv), or say where it is: make setup PYTHON=/path/to/python3" >&2; \
		exit 1; \
	fi; \
	if ! $(BIN)/python -c 'import pip' >/dev/null 2>&1; then \
		echo "Making $(VENV) with $$($$python --version)"; \
		rm -rf $(VENV) && "$$python" -m venv $(VENV) || exit 1; \
	fi
	@$(BIN)/python .ci/install.py
	@touch $(STAMP)

demo: $(STAMP)  ## run the network monitor on a real Airflow and Spark (KEEP=1 leaves the UI up)
	@KEEP=$(KEEP) $(BIN)/python -m demo

test: $(STAMP)  ## run the tests (ARGS="-k name" picks some)
	$(BIN)/python -m pytest -m "not soak" -n $(WORKERS) $(ARGS)

soak: $(STAMP)  ## run the long tests
	$(BIN)/python -m pytest -m soak --timeout=3600 $(ARGS)

bench: $(STAMP)  ## measure what updates cost, 15 minutes (BENCH="patterns --rows 100000" picks; FULL=1: the papers' sizes)
	@$(BIN)/python -m bench $(BENCH) $(if $(FULL),--full)

check: $(STAMP)  ## check format, lint, types and import layers
	$(BIN)/ruff format --check $(SOURCE)
	$(BIN)/ruff check $(SOURCE)
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)  ## format the code and repair what lint can repair
	$(BIN)/ruff check --fix-only $(SOURCE)
	$(BIN)/ruff format $(SOURCE)

clean:  ## remove what was built, cached or demonstrated (not .venv)
	rm -rf build dist .demo .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis spark-warehouse metastore_db derby.log
	find $(SOURCE) -name __pycache__ -type d -prune -exec rm -rf {} +
