# The two commands: `make reproduce` and `make test`. Both set up .venv first.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
CORES ?= all
# Where Python writes no bytecode, each of some 60 jobs would compile pandas again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: reproduce test pytest slurm test-long lint bench proofs docs settings lock clean

reproduce: .venv/.ready
	$(BIN)/snakemake --cores $(CORES)
	@echo "Open results/report.html; results/README.md explains the other files."

# in parallel: types are checked on one core, and tests on SLURM mostly wait
test: .venv/.dev
	@$(MAKE) --no-print-directory --jobs lint slurm pytest

pytest: .venv/.dev
	$(BIN)/python -m pytest -n auto --dist loadgroup --ignore tests/workflow/test_slurm.py tests

slurm: .venv/.dev
	$(BIN)/python -m pytest tests/workflow/test_slurm.py

# The same properties on many more cases (tests/helpers/cases.py), for hours: linear programs over all sequences for
# 500 random cases of each kind, 1,000 forged certificates of each, a whole run that is killed again and again.
test-long: .venv/.dev
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -n auto --dist loadgroup -m long tests

# How fast the engine is; minutes, on a quiet machine. BASE=<commit> compares with that commit.
bench: .venv/.dev
	$(BIN)/python tests/bench/engine.py

# The theorems of docs/proofs.md, checked by Coq; the checker of certificates that they prove sound.
proofs:
	@$(MAKE) --no-print-directory -C proofs

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint

# uv takes a quarter of the time of pip, which is the fallback for registries that only pip is set up for
install = VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --require-hashes -r $(1) || \
    $(BIN)/python -m pip install --quiet --require-hashes -r $(1)

.venv/.ready: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pufferflow needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes -r <(sed -n '/^uv==/,/# via/p' requirements.lock)
	$(call install,requirements.lock)
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

# Packages of tests and documentation; a run is faster without them, because pandas loads pyarrow if it is there.
.venv/.dev: .venv/.ready requirements-dev.lock
	$(call install,requirements-dev.lock)
	touch $@

# The documentation as a site, docs/_build/html/index.html; its tutorials are run. Warnings, also of dead links, are errors.
docs: .venv/.dev
	rm -rf docs/_build
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --builder html --doctree-dir docs/_build/doctrees docs docs/_build/html

# The table of settings in config/README.md, from the descriptions in their schema.
settings: .venv/.ready
	PYTHONPATH=workflow $(BIN)/python -m reproduction.settings config/README.md

# Renew the pins of a run and of development; no registry address.
LOCK := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --fork-strategy fewest \
    --generate-hashes --no-emit-index-url --no-header --upgrade
lock: .venv/.ready
	$(LOCK) --extra cluster --extra setup --output-file requirements.lock
	$(LOCK) --extra dev --constraint requirements.lock --output-file requirements-dev.lock

clean:
	rm -rf .venv .snakemake docs/_build proofs/_build results/[!R]* .mypy_cache .ruff_cache .hypothesis
