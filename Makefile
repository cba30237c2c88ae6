# Each target first brings .venv to what requirements.lock says. Another Python: make demo PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready
UV := 0.13.9
COMPILE := build/lock/bin/uv pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes \
	--no-annotate --no-header --no-emit-index-url --no-emit-find-links $(ARGS)

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
# onnxruntime reports its use to its maker unless it is told not to before it is loaded.
export ORT_DISABLE_TELEMETRY := 1

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench format lock secrets

help:
	@echo 'make demo     bring the appliance up on this machine, with the fixture corpus; Ctrl-C ends it'
	@echo 'make test     run every test, the acceptance suite against a real server among them'
	@echo 'make lint     style, types, import rules'
	@echo 'make format   put the style right'
	@echo 'make bench    measure, figures in build/bench/; takes most of an hour, and wants the machine for itself'
	@echo 'make lock     bring the lock files to what pyproject.toml asks for; newest of all: ARGS=--upgrade'
	@echo 'make secrets  make the secrets of the containers, in .secrets/'

demo: $(READY)
	@$(VENV)/bin/stacks demo

# For one test: make test ARGS=tests/unit/test_chunk.py
test: $(READY)
	$(RUN) -m pytest $(ARGS)

lint: $(READY)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports

format: $(READY)
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

# For one of them: make bench BENCH=timing_attack ARGS="--samples 400"
bench: $(READY)
	$(RUN) tests/benchmarks/everything.py $(BENCH) -- $(ARGS)

lock: build/lock/bin/uv
	$(COMPILE) --all-extras --output-file requirements.lock pyproject.toml
	$(COMPILE) --extra build --constraints requirements.lock --output-file requirements-run.lock pyproject.toml

build/lock/bin/uv: Makefile
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet uv==$(UV)
	@touch $@

secrets:
	@sh docs/deploy/make-secrets.sh

# The stamp is the last thing made: a set-up that was cut short is done again.
$(READY): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo 'Python 3.11 or newer is needed; no $(PYTHON) was found.' >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed; this is " \
		+ sys.version.split()[0] + ". Name another one: make PYTHON=python3.12 ...")'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo 'Python has no module venv or ensurepip here.' \
		'On Debian and Ubuntu: apt-get install python3-venv' >&2; exit 1; }
	@echo 'Setting up $(VENV) from requirements.lock; the first time takes a few minutes.'
	@$(PYTHON) -m venv $(VENV)
	@$(RUN) -m pip install --quiet --require-hashes --requirement requirements.lock
	@$(RUN) -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@
