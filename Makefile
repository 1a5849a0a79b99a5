# Calibrant's chores. CI calls the same targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# MLflow wants other versions than the tested ones, so it lives apart and is measured from there.
PEER := .venv-bench
MLFLOW := mlflow==3.17.2
AUTOML := .venv-flaml
SIZE ?= full
export OMP_NUM_THREADS ?= 1
# Real data sets for tests and reproductions, where they are at hand.
ifneq ($(wildcard ../shared/data),)
export CALIBRANT_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo test verify lint bench guarantees docs reproduce constraints clean

demo: $(VENV)/.demo
	$(BIN)/calibrant demo --out runs/demo

# Where memory has room, files of tests live there: half of the time of the store's tests is waiting
# for the disk, and nothing that they prove has to survive a power cut.
ROOM := $(shell df --output=avail /dev/shm 2>/dev/null | tail -n 1)
IN_MEMORY := $(shell test "$(ROOM)" -gt 8000000 2>/dev/null && echo PYTEST_DEBUG_TEMPROOT=/dev/shm)

PYTEST := $(IN_MEMORY) $(BIN)/python -m pytest -q -n 2 --dist worksteal --durations=25 --durations-min=2

# Does each part work? Eight minutes. tests/tiers.py says what belongs here.
test: $(VENV)/.test
	$(PYTEST) --tier test --time-record .durations-test.json

# Do the promises hold? Documentation, all guarantee cells, kills, browsers, peers, reproductions.
verify: $(VENV)/.test
	$(PYTEST) --tier verify --time-record .durations-verify.json

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/codespell
	$(BIN)/python tools/plain_english.py

# Speed is measured with all cores; at toy size nothing is, and other jobs may run beside it.
bench: $(VENV)/.test $(if $(filter full,$(SIZE)),$(PEER)/.mlflow $(AUTOML)/.flaml)
	$(if $(filter full,$(SIZE)),env -u OMP_NUM_THREADS )$(BIN)/python -m benchmarks --size $(SIZE)

guarantees: $(VENV)/.test
	$(BIN)/python -m tests.guarantees.full

# One experiment of a paper, ours beside theirs: make reproduce NAME=bigmart
reproduce: $(VENV)/.test
	$(BIN)/python -m reproductions $(or $(NAME),--list)

docs: $(VENV)/.test
	$(BIN)/python docs/generate.py
	$(BIN)/mkdocs build --strict --quiet
	$(BIN)/python docs/made_from.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing calibrant: about two minutes and 1.7 GB the first time."
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[torch,boosting,serve]"
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing calibrant with test tools and peers: about five minutes and 3 GB the first time."
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[all,dev,peers]"
	touch $@ $(VENV)/.demo

# Of the tested versions only torch's is asked for.
$(PEER)/.mlflow: Makefile
	@echo "Installing MLflow for its benchmark: about three minutes and 2 GB the first time."
	$(PYTHON) -m venv $(PEER)
	$(PEER)/bin/python -m pip install --quiet --upgrade pip
	$(PEER)/bin/python -m pip install --quiet \
		"$$(grep '^torch==' constraints.txt)" $(MLFLOW) -e ".[torch,serve]"
	touch $@

# It brings XGBoost, and that a library of CUDA, but no torch.
$(AUTOML)/.flaml: Makefile
	@echo "Installing FLAML for its benchmark: about a minute and 1.4 GB the first time."
	$(PYTHON) -m venv $(AUTOML)
	$(AUTOML)/bin/python -m pip install --quiet --upgrade pip
	$(AUTOML)/bin/python -m pip install --quiet "flaml[automl]==2.7.0" pyarrow
	touch $@

# The exact versions that were tested: no local suffix, no editable line, no path, no installer.
constraints: $(VENV)/.test
	$(BIN)/python -m pip freeze --exclude-editable --exclude pip --exclude setuptools \
		| grep -v ' @ ' | sed 's/+cpu//' > constraints.txt

clean:
	rm -rf $(VENV) $(PEER) $(AUTOML) runs site docs/cli build dist
