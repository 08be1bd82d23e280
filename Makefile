# Each target makes the environment it needs; python3, git and make are all it takes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check

PREVIOUS := .venv-previous
SUITE := python -m pytest -c tests/sklearn_suite/pytest.ini -n 2 -q

.PHONY: demo studio test test-jit test-nojit test-sklearn test-sklearn-previous coverage lint format bench nightly docs page page-check wheel clean

demo: $(VENV)/.workbench
	$(BIN)/python examples/demo.py

studio: $(VENV)/.studio
	$(BIN)/margrove studio

test: test-jit test-sklearn test-nojit

test-jit: $(VENV)/.dev
	$(BIN)/margrove warmup
	$(BIN)/pytest -n 2 -m "not nightly"

test-nojit: $(VENV)/.dev
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -n 2 -m "nojit and not nightly"

# scikit-learn's own tests, run against our classes; at night also those of its previous version.
test-sklearn: $(VENV)/.dev
	$(BIN)/$(SUITE)

test-sklearn-previous: $(PREVIOUS)/.test
	$(PREVIOUS)/bin/$(SUITE)

coverage: $(VENV)/.dev
	$(BIN)/pytest -n 2 -m "not nightly" --cov --cov-report=
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -n 2 -m "nojit and not nightly" --cov --cov-append --cov-report=term:skip-covered

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/compare.py

nightly: $(VENV)/.dev coverage test-sklearn test-sklearn-previous
	$(BIN)/pytest -n 2 -m nightly
	NUMBA_BOUNDSCHECK=1 MARGROVE_CACHE_DIR= $(BIN)/pytest -n 2 -m "not nightly and not packaging" tests/data tests/margin

# A wheel with machine code, for this version of Python and this kind of machine.
LEVELS ?= $(if $(filter x86_64 AMD64,$(shell uname -m)),x86-64-v3,arm64)

wheel: $(VENV)/.workbench
	$(PIP) -e '.[kernels]'
	$(BIN)/python scripts/build_kernels.py build/kernels $(LEVELS)
	MARGROVE_WHEEL_KERNELS=build/kernels $(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps -w dist .

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

# The page of the studio needs Node, and only for those who change it: its build is committed.
page: studio-ui/node_modules
	cd studio-ui && npm run --silent build

page-check: studio-ui/node_modules
	cd studio-ui && npm run --silent lint && npm run --silent typecheck && npm run --silent test
	cd studio-ui && npm run --silent build -- --outDir ../build/page --emptyOutDir
	diff -r build/page src/margrove/studio/static

clean:
	rm -rf $(VENV) $(PREVIOUS) docs/_build docs/tutorials studio-ui/node_modules build/page .coverage .coverage.*

studio-ui/node_modules: studio-ui/package-lock.json
	cd studio-ui && npm ci --no-fund --no-audit --silent
	touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.workbench: $(BIN)/python pyproject.toml
	$(PIP) -e '.[workbench]'
	touch $@

$(VENV)/.studio: $(BIN)/python pyproject.toml
	$(PIP) -e '.[studio]'
	touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(PIP) -e '.[dev]'
	touch $@

$(PREVIOUS)/.test: pyproject.toml
	$(PYTHON) -m venv $(PREVIOUS)
	$(PREVIOUS)/bin/pip install --quiet --disable-pip-version-check -e '.[test]' 'scikit-learn==1.8.*'
	touch $@

$(VENV)/.bench: $(BIN)/python pyproject.toml
	$(PIP) -e '.[bench]'
	touch $@

$(VENV)/.docs: $(BIN)/python pyproject.toml
	$(PIP) -e '.[docs]'
	touch $@
