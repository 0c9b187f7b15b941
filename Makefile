# Holdpoint: `make run` runs it, `make test` tests it. Both need Python 3.11 or newer, pip and make, nothing else.

SHELL := /bin/sh
.DEFAULT_GOAL := help
PY := .venv/bin/python
SUPERVISOR := $(PY) -m config.supervisor
THROWAWAY := $(SUPERVISOR) exec --throwaway
PYTEST := $(PY) -m pytest
# Only files that have such tests are loaded.
files_with = $$(grep -rl --include='test_*.py' 'mark\.$(1)' tests)
# Workers for the parallel parts. Each has its own test database.
JOBS ?= 2
export PYTHONPATH := $(CURDIR)
# Compiled modules are kept, where the surroundings say not to beside the sources: compiling all tests takes 20 s each time.
ifneq ($(PYTHONDONTWRITEBYTECODE),)
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/.venv/compiled
endif

.PHONY: help install run test check soak leaves chaos permissions bench screenshots lock fmt clean
.PHONY: check-lint check-format check-layers check-types check-templates check-migrations check-unit

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r name text; do printf '%-14s %s\n' "$$name" "$$text"; done

install: ## make .venv and install the locked packages, if they changed
	@for python in python3.11 python3; do \
	  if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    exec $$python -I config/supervisor/bootstrap.py; \
	  fi; \
	done; echo "Error: Holdpoint needs Python 3.11 or newer; neither python3.11 nor python3 is." >&2; exit 1

run: install ## run Holdpoint on http://127.0.0.1:8000 (PORT and HOLDPOINT_HOME are honoured)
	@exec $(SUPERVISOR) run

# Properties are tried with a third of their examples in `make check`, with all of them in `make test`.
test: export PROPERTY_SCALE = 1
test: check ## everything that gates a change
	@$(THROWAWAY) -- $(PYTEST) -m "not unit and not stack and not soak" -n $(JOBS) --dist worksteal
	@command -v "$${CHROMIUM:-chromium}" >/dev/null || printf '\n%s\n%s\n\n' \
	  '*** NO CHROMIUM: the browser tests are skipped, and nobody has looked at the pages. ***' \
	  '*** Install the package chromium, or name one with CHROMIUM=<path>. With CI=true this fails. ***' >&2
	@$(PYTEST) -m "stack and not soak" -p no:randomly -n $(JOBS) --dist loadfile tests/browser $(call files_with,stack)

check: install ## the fast part: lint, types, layers, templates, migrations, unit tests
	@PROPERTY_SCALE=$${PROPERTY_SCALE:-0.33} $(MAKE) --no-print-directory --keep-going -j2 --output-sync=target \
	  check-types check-unit check-lint check-format check-layers check-templates check-migrations

check-lint:
	@$(PY) -m ruff check .

check-format:
	@$(PY) -m ruff format --check .

check-layers:
	@.venv/bin/lint-imports --no-logo

check-types:
	@$(PY) -m mypy .

check-templates:
	@$(PY) -m djlint templates --lint --quiet

# The database is not asked: only models and migration files are compared, so the warning about it is beside the point.
check-migrations:
	@DJANGO_SETTINGS_MODULE=config.settings.test $(PY) -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run

check-unit:
	@$(PYTEST) -m unit -n $(JOBS) $(call files_with,unit)

soak: install ## long fault, race and volume runs; figures go to docs/measurements.md
	@$(THROWAWAY) -- $(PYTEST) -m soak -p no:randomly
	@$(MAKE) --no-print-directory leaves

# RECORD=1 adds the figures to docs/measurements.md.
leaves: install ## freeze each setting of the policy documents in turn: a test of its row must fail
	@$(THROWAWAY) -- $(PYTEST) -p tests.leaves.plugin -p no:randomly -q $$($(PY) -m tests.leaves.walk)

# SECONDS (120) and SEED (random, printed) are honoured. RECORD=1 adds the figures to docs/measurements.md.
chaos: install ## use and break a whole stack at random, then check its record
	@$(PY) -m bench.chaos run $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED)) $(if $(RECORD),--record)

permissions: install ## write docs/permissions.md anew from what the doors say
	@WRITE_PERMISSIONS=1 $(THROWAWAY) -- $(PYTEST) tests/contract/test_permissions.py -m "not soak" -p no:randomly -q

bench: install ## benchmarks with their references, on servers that really write to disk
	@$(THROWAWAY) --durable -- $(PY) -m bench

screenshots: install ## make docs/images from a demo stack in Chromium
	@$(PY) -m bench.screenshots

lock: install ## pin requirements/*.in with hashes
	@for name in base prod dev; do \
	  .venv/bin/uv pip compile --quiet --generate-hashes --no-annotate --no-header --python-version 3.11 \
	    requirements/$$name.in -o requirements/$$name.txt || exit 1; \
	done

fmt: install ## format and fix what can be fixed
	@$(PY) -m ruff format . && $(PY) -m ruff check --fix .

clean: ## remove .venv and caches; data in var/ stays
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache staticfiles
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
