# Every target sets itself up: a fresh clone needs Python >= 3.11 and make, nothing else.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

# Compiled programs are kept between runs; each test worker computes on one thread and keeps whole
# files, whose tests share models and compiled functions.
export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/.cache/jax
export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS ?= 0.1

.PHONY: demo test test-all test-browser test-cluster lint format bench docs tutorials package setup clean

demo: $(READY)  ## the main job end to end, into demo/
	PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/demo.sh demo

test: $(READY)  ## the tests, without the slow ones
	$(BIN)/python -m pytest -n 2 --dist loadfile --durations=15 -m "not slow and not browser"

test-all: $(READY)  ## every test
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-browser: $(READY)  ## the explorer page in Debian's Chromium, installed if that is possible
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && apt-get update -qq >/dev/null 2>&1 && apt-get install -y -qq \
	  --no-install-recommends chromium >/dev/null 2>&1; } || echo "chromium is not here and cannot be installed"
	$(BIN)/python -m pytest -m browser -rs tests/explorer

test-cluster: $(READY)  ## sweeps on a one-node SLURM, one training over several processes
	$(BIN)/python -m pytest -m cluster -rs tests/cluster

lint: $(READY)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: $(READY)  ## mend the style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)  ## the documentation site into site/, strictly and without the network, by both builders
	$(BIN)/python examples/live.py
	PATH="$(CURDIR)/$(BIN):$$PATH" zensical build --strict --clean
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

tutorials: $(READY)  ## every tutorial of the documentation, run as it stands
	$(BIN)/python examples/tutorials.py

package: $(READY)  ## wheel and sdist into dist/, checked and tried in a fresh environment
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m twine check --strict dist/*
	PYTHON=$(BIN)/python bash .ci/wheel

bench: $(READY)  ## speed, each as a ratio against a reference
	@set -e; for name in simulate step rollout compile growth; do \
	  echo "== benchmarks/$$name.py"; $(BIN)/python benchmarks/$$name.py; done

setup: $(READY)  ## the virtual environment alone

clean:  ## everything that can be made again
	rm -rf .venv .cache .pytest_cache .ruff_cache .hypothesis demo dist site docs/live

# Stamped last, so that an interrupted installation is done again.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and "dhn needs Python >= 3.11, but $(PYTHON) is %d.%d. Name another: make PYTHON=python3.12" % v[:2])'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@
