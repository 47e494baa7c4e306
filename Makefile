# Every target makes its own virtual environment: Python 3.11 or newer is all that is needed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Byte code must be written: without it every import of scipy takes three times as long.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test lint docs bench clean

demo: $(VENV)/.installed
	$(BIN)/python examples/01_three_functions.py
	$(BIN)/ringtrue paper all

test: lint
	$(BIN)/python -m pytest -n 2
	$(BIN)/python -m pytest -n 0 -q --doctest-modules src/ringtrue

lint: $(VENV)/.tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site is in site/; search needs a server: python -m http.server --directory site
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Levels and power take an hour; name one module to run it alone: make bench BENCH=studies
BENCH ?= studies uniformity twosample coverage paper odes runs plots report levels power
bench: $(VENV)/.tools
	for name in $(BENCH); do $(BIN)/python -m benchmarks.$$name || exit 1; done

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[plot]'
	touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

$(VENV)/.tools: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

clean:
	rm -rf $(VENV) paper .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build site
