# Everything runs in a virtual environment in the checkout. It is created on first use, and updated when pyproject.toml changes.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c '$(NEW_ENOUGH)' >/dev/null 2>&1 && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
# One BLAS thread per worker: more would compete for the cores.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --dist loadgroup --no-loadscope-reorder
PARTS ?=
FLAGS ?=
BASE ?=
unexport PYTHONDONTWRITEBYTECODE  # bytecode on disk makes the next run start faster

.PHONY: help reproduce paper quick test compile lint serve bench benchmark-libraries soak docs size wheel check-wheel clean

help:            ## list these targets
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 22

reproduce: $(VENV)/lab.stamp  ## run the paper's evaluation, short version: report in out/report/index.html
	$(BIN)/hybandits reproduce --scale quick --protocol both --out out

paper: $(VENV)/lab.stamp  ## run the paper's evaluation at full length (some 80 minutes on two cores)
	$(BIN)/hybandits reproduce --scale paper --protocol both --out out-paper

quick: $(VENV)/dev.stamp  ## run lint, types and the fast tests (under a minute once everything is compiled)
	$(MAKE) --no-print-directory --jobs 2 lint compile
	$(PYTEST) -n 2 -m "not slow"

test: $(VENV)/dev.stamp  ## run lint, types, layers, all tests and doctests (about six minutes in a fresh clone)
	$(MAKE) --no-print-directory --jobs 2 lint compile
	$(PYTEST) -n 3  # on two cores: some tests wait for other processes

compile: $(VENV)/dev.stamp  ## compile all kernels for this machine (about a minute the first time)
	$(BIN)/hybandits warmup

lint: $(VENV)/dev.stamp  ## run ruff, mypy and import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

serve: $(VENV)/service.stamp  ## run the decision service with simulated visitors: http://127.0.0.1:8000, until Ctrl-C
	$(BIN)/python -m examples.service_demo

bench: $(VENV)/bench.stamp  ## measure speed and memory (about 200 minutes; some parts: make bench PARTS="rounds reading"); writes bench.json
	$(BIN)/python -m benchmarks --json bench.json $(PARTS)

benchmark-libraries: $(VENV)/libraries.stamp  ## compare bandit libraries at default settings (75 minutes; a short run: make benchmark-libraries FLAGS=--quick)
	$(BIN)/python -m library_benchmark $(FLAGS)

soak: $(VENV)/dev.stamp  ## run millions of updates against extended precision, and kill servers under load (minutes)
	$(BIN)/python -m soak

docs: $(VENV)/dev.stamp  ## test the examples and links of the documentation
	$(BIN)/python -m pytest README.md docs tests/test_docs.py

size: $(VENV)/dev.stamp  ## count lines and files per folder, beside those of the previous tag (or of BASE=COMMIT)
	$(BIN)/python -m benchmarks.size $(BASE)

wheel: $(VENV)/dev.stamp  ## build the sdist, and the wheel with machine code for this platform, into dist/
	$(BIN)/python -m build

check-wheel: $(VENV)/dev.stamp  ## build the wheel, install it in an empty environment, decide there with compiling forbidden
	$(BIN)/python .ci/check_wheel.py

clean:           ## remove the environment, caches and results
	rm -rf $(VENV) out out-paper out-library-benchmark simulation dist build bench.json .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n "$(PYTHON)" && $(PYTHON) -c '$(NEW_ENOUGH)' || \
		{ echo "hybandits needs Python 3.11 or newer, and none was found: install one, or run make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/%.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	@touch $@
