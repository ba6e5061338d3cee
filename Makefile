# The two commands: `make reproduce` and `make test`. Both set up .venv first.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
CORES ?= all

.PHONY: reproduce test pytest slurm test-long lint bench docs settings lock clean

reproduce: .venv/.ready
	$(BIN)/snakemake --cores $(CORES)
	@echo "Open results/report.html; results/README.md explains the other files."

# side by side: types are checked on one core, and what runs on SLURM mostly waits
test: .venv/.ready
	@$(MAKE) --no-print-directory --jobs lint slurm pytest

pytest: .venv/.ready
	$(BIN)/python -m pytest -n auto --dist loadgroup --ignore tests/workflow/test_slurm.py tests

slurm: .venv/.ready
	$(BIN)/python -m pytest tests/workflow/test_slurm.py

# The same properties on many more cases (tests/helpers/cases.py), and what takes long: linear programs over all
# sequences for 500 random cases of each kind, 1,000 forged certificates of each, a whole run that is killed again and again.
test-long: .venv/.ready
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -n auto --dist loadgroup -m long tests

# How fast the engine is; minutes, on a quiet machine. BASE=<commit> compares with that commit.
bench: .venv/.ready
	$(BIN)/python tests/bench/engine.py

lint: .venv/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint

# uv takes a quarter of pip's time; pip does it where the registry is one that only pip is set up for
.venv/.ready: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pufferflow needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes -r <(sed -n '/^uv==/,/# via/p' requirements.lock)
	VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --compile-bytecode --require-hashes -r requirements.lock || \
	    $(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	$(BIN)/python -m compileall -q -j 0 pufferflow workflow/reproduction  # where Python may write none, every job would compile them
	touch $@

# The documentation as a site, docs/_build/html/index.html; its tutorials are run. Warnings and dead links are errors.
docs: .venv/.docs
	rm -rf docs/_build
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --builder html --doctree-dir docs/_build/doctrees docs docs/_build/html
	$(BIN)/python docs/check_site.py docs/_build/html

.venv/.docs: .venv/.ready docs/requirements.lock
	VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --require-hashes -r docs/requirements.lock || \
	    $(BIN)/python -m pip install --quiet --require-hashes -r docs/requirements.lock
	touch $@

# The table of settings in config/README.md, from the descriptions in their schema.
settings: .venv/.ready
	PYTHONPATH=workflow $(BIN)/python -m reproduction.settings config/README.md

# Renew the pins: needs `uv`; the lock carries hashes and no registry address.
lock:
	uv pip compile pyproject.toml --extra cluster --extra dev --universal --python-version 3.11 --fork-strategy fewest \
	    --generate-hashes --no-emit-index-url --no-header --upgrade --output-file requirements.lock
	uv pip compile docs/requirements.in --constraint requirements.lock --universal --python-version 3.11 --fork-strategy fewest \
	    --generate-hashes --no-emit-index-url --no-header --upgrade --output-file docs/requirements.lock

clean:
	rm -rf .venv .snakemake docs/_build results/[!R]* .mypy_cache .ruff_cache .hypothesis
