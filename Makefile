# Every word a contributor types; `make` alone lists them. Needs python3 (3.11 or newer) and make, nothing else.

.DEFAULT_GOAL := help
.PHONY: help setup check format test map coverage demo bench gpu docs soak mutants clean

VENV    := .venv
BIN     := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PY      := $(BIN)/python
READY   := $(VENV)/.ready
WORKERS ?= 2
TESTS   ?= tests
PYTHONS := $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 python)
CASES   ?= 2000000
SEED    ?= 0

# MAKE_TERMOUT is set only where the output is a terminal, so a log gets no colour codes.
ifeq ($(NO_COLOR)$(if $(MAKE_TERMOUT),,plain),)
BOLD := \033[1m
TINT := \033[36m
OFF  := \033[0m
endif

say = @printf '$(BOLD)%s$(OFF)\n' $(1)

help: ## list these words
	@printf '\n$(BOLD)regard$(OFF) · every attention in one call\n\n'
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  $(TINT)make %-9s$(OFF) %s\n", $$1, $$2 }' Makefile
	@printf '\n'

setup: $(READY) ## make .venv and install into it; every other word does so when it must

# Done once, and again when what is to be installed changes.
$(READY): pyproject.toml constraints.txt
	$(call say,"Setting up $(VENV). The first time takes a few minutes: torch is large.")
	@if ! $(PY) -m pip --version >/dev/null 2>&1; then \
	    for python in $(PYTHONS); do \
	        if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	            "$$python" -m venv $(VENV); exit; \
	        fi; \
	    done; \
	    printf '%s\n' "No Python 3.11 or newer among: $(PYTHONS)." \
	        "Install one, or name it: make setup PYTHON=/path/to/python3.12" >&2; \
	    exit 1; \
	fi
	@$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(READY)
	$(call say,"Ready.")

check: $(READY) ## format, lint, types and the map of the rooms
	$(call say,"Format")
	@$(PY) -m ruff format --check .
	$(call say,"Lint")
	@$(PY) -m ruff check .
	$(call say,"Types")
	@$(PY) -m mypy
	$(call say,"Map")
	@$(PY) -m pytest -q tests/test_map.py

format: $(READY) ## write the format, and mend the lint that mends itself
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix .

test: $(READY) ## the whole suite, on WORKERS=2 processes; TESTS=tests/core for a part of it
	@$(PY) -m pytest -q -n $(WORKERS) --dist worksteal $(TESTS)

map: $(READY) ## write the tree of rooms in README from the first line of each module
	@$(PY) tests/test_map.py

coverage: $(READY) ## every branch of core/ is taken by its tests
	@$(PY) -m pytest -q -n $(WORKERS) --cov=regard.core --cov-branch --cov-report=term-missing --cov-fail-under=100 tests/core

demo: $(READY) ## a layer learns where to look, in seconds, and shows it
	@$(PY) -m regard demo

bench: $(READY) ## time every road; refuses where tests fail
	@$(PY) -m benchmarks.run

gpu: $(READY) ## the tests and benchmarks that need a GPU
	@$(PY) -m pytest -q -m gpu --gpu
	@$(PY) -m benchmarks.run --device cuda

docs: $(READY) ## build the pages into site/
	@$(BIN)/zensical build --clean --strict

soak: $(READY) ## random cases against the definition, for hours: CASES=2000000 SEED=0
	@$(PY) -m benchmarks.soak --cases $(CASES) --seed $(SEED)

mutants: $(READY) ## break core/ in every way, and count what its tests miss: half an hour
	@$(BIN)/mutmut run --max-children $(WORKERS)
	@$(PY) -m benchmarks.mutants

clean: ## remove what was built and cached; .venv stays
	@rm -rf build dist site htmlcov mutants .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis .cache
	@find regard tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
