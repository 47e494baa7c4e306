# Every target makes its own virtual environment: Python 3.11 or newer is all that is needed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Neighbours share what a module computes once, so each process starts with its half of the tests.
PYTEST := python -m pytest -n 2 --dist worksteal
FAST := not process and not paper and not site and not slow and not libraries
# Byte code must be written: without it every import of scipy takes three times as long.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test check lint test-fast test-oldest test-libraries docs pictures changelog bench peers mutants clean

demo: $(VENV)/.installed
	$(BIN)/python examples/01_three_functions.py
	$(BIN)/ringtrue paper all

test: $(VENV)/.tools
	$(BIN)/python -m pytest -n 0 --doctest-modules src/ringtrue tests/oldest.py
	$(BIN)/$(PYTEST)

check: lint test-fast

lint: $(VENV)/.tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test-fast: $(VENV)/.tools
	$(BIN)/$(PYTEST) -m '$(FAST)'

# What old versions say of newer ones that they meet is not about us.
test-oldest: .venv-oldest/.tools
	.venv-oldest/bin/$(PYTEST) -m '$(FAST)' -W ignore::DeprecationWarning

# The site is in site/; search needs a server: python -m http.server --directory site
# The heavy friends, in an environment of their own: adapters are tested with the libraries themselves.
test-libraries: .venv-libraries/.tools
	.venv-libraries/bin/python -m pytest -n 2 --dist loadfile -m libraries tests/adapters tests/execution/test_executors.py tests/test_docs.py

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The section of this version in CHANGELOG.md, made anew of the fragments in changelog.d, which stay.
changelog: $(VENV)/.tools
	$(BIN)/python docs/changelog.py

# The pictures of docs/gallery.md, drawn again by its own snippets.
pictures: $(VENV)/.installed
	MPLBACKEND=Agg $(BIN)/python docs/pictures.py

# Levels and power take an hour; name one module to run it alone: make bench BENCH=studies
BENCH ?= house studies uniformity twosample coverage paper odes runs scale plots report verdicts libraries suites levels power
bench: $(VENV)/.tools
	for name in $(BENCH); do $(BIN)/python -m benchmarks.$$name || exit 1; done

# The same work through other libraries, in environments of their own, which take a while and gigabytes to install;
# docs/benchmarks.md is written by it. PEERS='--python sbi=PATH' uses an environment that exists.
PEERS ?=
peers: $(VENV)/.installed
	$(BIN)/python -m benchmarks.peers $(PEERS)

# Small mistakes, one at a time in a copy of the source: do tests see them? It takes half an hour, and can be stopped.
MUTANTS ?= --sample 200 --seed 0
mutants: $(VENV)/.tools
	$(BIN)/python -m benchmarks.mutants $(MUTANTS)

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[plot]'
	touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

$(VENV)/.tools: $(VENV)/.installed constraints.txt
	$(BIN)/python -m pip install --quiet --editable '.[test]' --constraint constraints.txt
	touch $@

# Torch comes first and by number: left to itself, pip takes the newest, with all of CUDA.
TORCH ?= 2.13.0
.venv-libraries/.tools: pyproject.toml
	$(PYTHON) -m venv .venv-libraries
	.venv-libraries/bin/python -m pip install --quiet 'torch==$(TORCH)'
	.venv-libraries/bin/python -m pip install --quiet --editable '.[libraries]'
	touch $@

# The oldest versions have wheels for the oldest Python only.
.venv-oldest/.tools: pyproject.toml tests/oldest.py
	python3.11 -m venv --clear .venv-oldest
	python3.11 tests/oldest.py > .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install --quiet --editable '.[test]' --constraint .venv-oldest/constraints.txt
	touch $@

clean:
	rm -rf $(VENV) .venv-* .mutants paper .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build site
