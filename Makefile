# Every target makes its own virtual environment: Python 3.11 or newer is all that is needed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Byte code must be written: without it every import of scipy takes three times as long.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test lint bench clean

demo: $(VENV)/.installed
	$(BIN)/python examples/01_three_functions.py
	$(BIN)/python examples/03_identity_is_not_enough.py

test: lint
	$(BIN)/python -m pytest -n 2
	$(BIN)/python -m pytest -n 0 -q --doctest-modules src/ringtrue

lint: $(VENV)/.tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.tools
	$(BIN)/python -m benchmarks

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.tools: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build
