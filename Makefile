# What one does with this repository. `make` alone lists it.
# Needs Python 3.11 or newer with venv and pip, and make; everything else goes into .venv.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed
DEV := $(VENV)/.installed-dev
BUILT := src/gpupool/_native/.made
NATIVE := native/build.py $(wildcard native/*/*.[ch] native/*/*/*.[ch] native/*/*/*.inc)

# make up NAME=training CONFIG=my-cluster.yaml PORT=7443
NAME ?=
CONFIG ?=
PORT ?=
# One word of the shell, whatever is in it.
quoted = '$(subst ','\'',$(1))'
NAME_FLAG = $(if $(NAME),--name $(call quoted,$(NAME)))
UP_FLAGS = $(NAME_FLAG) $(if $(CONFIG),--config $(call quoted,$(CONFIG))) $(if $(PORT),--port $(call quoted,$(PORT)))

# make test T="tests/cli -k quota"
T ?= tests
# make conformance S="basics access"
S ?=
# make attack SEED=7 BUDGET=120 SOAK=1800
SEED ?=
BUDGET ?=
SOAK ?=

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { names[++n] = $$1; words[n] = $$2; \
	    if (length($$1) > width) width = length($$1) } \
	  END { for (i = 1; i <= n; i++) printf "  make %-" width "s  %s\n", names[i], words[i] }' \
	  $(MAKEFILE_LIST)

.PHONY: up
up: $(BUILT) ## Start a local cluster (NAME=, CONFIG=, PORT=)
	@$(BIN)/gpupool up $(UP_FLAGS) --example shared-gpus

.PHONY: notebook
notebook: $(BUILT) ## Start a cluster with JupyterLab on a card (NAME=)
	@$(BIN)/gpupool up $(UP_FLAGS) --example notebook-service

.PHONY: down
down: $(READY) ## Stop it; its data stays (NAME=)
	@$(BIN)/gpupool down $(NAME_FLAG)

.PHONY: test
# Hypothesis' own profile "ci": the same examples every time, so that what fails here is the
# change's doing. New examples are looked for by `make test-slow` and by plain pytest.
test: tested ## Run the tests (T="path -k word")
	$(BIN)/pytest -n 2 -m "not slow and not kubernetes" --hypothesis-profile=ci $(T)

.PHONY: browser
browser: $(DEV) ## Install JupyterLab, chromium, axe-core for tests (root)
	@$(BIN)/python tools/install.py requirements-notebook.lock
	@$(BIN)/python -c 'import sys; from tests.browser.chromium import find_chromium; sys.exit(not find_chromium())' \
	  || { apt-get update --quiet && apt-get install --quiet --yes --no-install-recommends chromium; }
	@$(BIN)/python -m tests.browser.axe || true  # it says what is missing; its tests say that they were skipped

.PHONY: prometheus
prometheus: ## Install Prometheus for tests (root)
	@command -v prometheus >/dev/null && command -v promtool >/dev/null \
	  || { apt-get update --quiet && apt-get install --quiet --yes --no-install-recommends prometheus; }

.PHONY: test-slow
test-slow: tested ## Run the long ones: crashes, large clusters
	$(BIN)/pytest -m "slow and not kubernetes and not attack" tests

.PHONY: attack
attack: tested ## Attack all of it for ten minutes (SEED= BUDGET= SOAK=)
	@ATTACK_SEED=$(call quoted,$(SEED)) ATTACK_SECONDS=$(call quoted,$(BUDGET)) $(if $(SOAK),SOAK=$(call quoted,$(SOAK))) \
	  $(BIN)/python -m tests.attack

.PHONY: test-sanitizers
test-sanitizers: $(DEV) ## Run the tests of native/ under ASan and UBSan (T=)
	@$(BIN)/python -m tests.native.sanitizers $(if $(filter-out tests,$(T)),$(T))

.PHONY: kubernetes
kubernetes: tested ## Start a real Kubernetes with gpupool (root, Go)
	@$(BIN)/python -m testbed.story up

.PHONY: kubernetes-down
kubernetes-down: $(DEV) ## End it; the machine is as it was
	@$(BIN)/python -m testbed.story down

.PHONY: test-kubernetes
test-kubernetes: tested ## Run the tests on one (root, Go; or KUBECONFIG=)
	@$(if $(KUBECONFIG),,$(BIN)/python testbed/build.py)
	$(BIN)/pytest -m kubernetes tests/kubernetes

.PHONY: conformance
conformance: tested ## Compare with a real kube-apiserver (Go; S=)
	$(BIN)/python -m tests.conformance.differential $(S)

.PHONY: check
check: $(DEV) ## Check format, lint, types, architecture and docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q tests/test_architecture.py tests/test_docs.py tests/test_habits.py

.PHONY: coverage
coverage: tested ## Measure coverage of what decides about GPUs
	$(BIN)/python -m tools.coverage

.PHONY: fix
fix: $(DEV) ## Format, and repair what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: bench
bench: $(DEV) ## Measure: writes, lists, watches, start-up, memory
	$(BIN)/python -m bench

.PHONY: bench-kubernetes
bench-kubernetes: $(DEV) ## Measure pods per second beside kube-scheduler (Go)
	$(BIN)/python -m bench.kubernetes_scheduling

.PHONY: docs
docs: $(DEV) ## Renew what is generated of docs/; build the site
	$(BIN)/python -m tools.docs
	$(BIN)/mkdocs build --strict --quiet
	@echo build/site/index.html

.PHONY: schemas
schemas: $(DEV) ## Renew what is recorded of the Kubernetes API (Go)
	$(BIN)/python -m tools.schemas

.PHONY: lock
LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-header --no-emit-package kubeclient --no-emit-package localkube
lock: $(DEV) ## Resolve the dependencies again into the lock files
	$(BIN)/pip install --quiet uv
	$(LOCK) pyproject.toml --extra kubernetes --extra local --extra top --group build --output-file requirements.lock
	$(LOCK) --group compiler --output-file requirements-compiler.lock
	$(LOCK) pyproject.toml --extra kubernetes --extra local --extra top --group dev \
	  --constraints requirements.lock --constraints requirements-compiler.lock --output-file requirements-dev.lock
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["notebook"], sep="\n")' \
	  | $(LOCK) --constraints requirements-dev.lock --output-file requirements-notebook.lock -

.PHONY: venv
venv: $(DEV) ## Make .venv and install all that tests need

.PHONY: native
native: $(DEV) ## Compile the native parts (ALL=1: for all machines)
	$(BIN)/python native/build.py $(if $(ALL),--all)

.PHONY: clean
clean: ## Remove .venv and everything generated; clusters stay
	rm -rf $(VENV) src/gpupool/_native .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Installed again only when a lock file or our own metadata changes. `make up` needs a third of what
# the tests need.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo 'gpupool needs Python 3.11 or newer; "$(PYTHON)" is $(shell $(PYTHON) --version 2>&1 | head -n 1).'; \
	  echo 'Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)'; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo 'This Python cannot make virtual environments (on Debian: apt install python3-venv).'; exit 1; }
	@test -x $(BIN)/python || { echo 'Making $(VENV) ...'; $(PYTHON) -m venv $(VENV); }
	@echo 'Installing the packages that gpupool needs ...'
	@$(BIN)/python tools/install.py requirements.lock
	@if $(BIN)/python native/build.py --needs-zig; then \
	  echo 'Installing a C compiler, as there is none (ziglang) ...'; \
	  $(BIN)/python tools/install.py requirements-compiler.lock; fi
	@echo 'Compiling the simulated driver and the limiter ...'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
	  --no-build-isolation --editable .
	@touch $@

$(DEV): requirements-dev.lock $(READY)
	@echo 'Installing the packages that the tests need ...'
	@$(BIN)/python tools/install.py requirements-dev.lock
	@touch $@

# An editable install points at the sources: what is compiled has to follow them.
$(BUILT): $(NATIVE) | $(READY)
	@$(BIN)/python native/build.py
	@touch $@

# The tests run what is shipped, which ziglang compiles; `make up` may have used another compiler.
.PHONY: tested
tested: $(DEV)
	@$(BIN)/python native/build.py
