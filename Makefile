# Every target does its own set-up on a fresh machine; nothing is installed a second time.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# By the environment, so that it binds the environments in which packages are built as well.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt

PYTEST := $(BIN)/pytest --numprocesses
TIERS := install server kill export paper browser
TESTS := test-default $(TIERS:%=test-%)
SPACE := $(subst ,, )
DEFAULT := not ($(subst $(SPACE), or ,$(TIERS)))
TIMES := build/times

.PHONY: help check test test-all $(TESTS) bench demo docs build clean

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 14

check: $(VENV)/.every-extra  ## lint, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: test-default  ## the default suite; a tier: make test-server, -browser, -kill, -export, -paper, -install

$(TESTS): test-%: $(VENV)/.every-extra
	$(PYTEST) 2 -m "$(if $(filter default,$*),$(DEFAULT),$*)"

# In three runs, so that servers are gone when they are no longer needed. Where tests wait for servers, packages and
# killed processes, a third worker uses the cores meanwhile; the default suite computes, and two are faster.
test-all: $(VENV)/.every-extra  ## the default suite and every tier, with coverage, times and the slowest tests
	rm -rf $(TIMES) .coverage && mkdir -p $(TIMES)
	for run in "3 install or server" "3 kill or export or paper or browser" "2 $(DEFAULT)"; do \
		LOOKDOWN_TEST_TIMES=$(TIMES) $(PYTEST) $${run%% *} --cov --cov-append --cov-report= -m "$${run#* }" || exit 1; \
	done
	@echo "slowest tests, seconds:" && sort -rn $(TIMES)/tests.txt | head -20
	@echo "tiers:" && cat $(TIMES)/tiers.txt
	$(BIN)/coverage report --precision 2 --fail-under 98

bench: $(VENV)/.every-extra  ## every measurement against peers, into runs/bench; one table of ratios
	$(BIN)/lookdown bench

demo: $(VENV)/.demo  ## the whole story on the synthetic world, into demo/; SERVE=1 ends with the page running
	$(BIN)/lookdown demo
	$(if $(filter 1,$(SERVE)),$(BIN)/lookdown serve demo/gallery)

docs: $(VENV)/.every-extra  ## the documentation site, into build/site; a broken link fails it
	$(BIN)/python -m zensical build --strict --clean

build: $(VENV)/.every-extra  ## the wheel, into dist; `make test-install` tries it in a clean environment
	rm -rf dist
	$(BIN)/python -m build --wheel --outdir dist

clean:  ## drop the environment and what was built
	rm -rf $(VENV) dist build

# torch goes in alone and first, so that nothing else decides which build of it comes (CONTRIBUTING.md, Dependencies).
$(VENV)/.torch: constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'lookdown needs Python 3.11 or later; name one: make PYTHON=python3.12')"
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(PIP) torch
	touch $@

$(VENV)/.every-extra: $(VENV)/.torch pyproject.toml
	$(PIP) --editable '.[chips,networks,training,gallery,export,milvus,object-storage,ray,reproduce,service,cli,bench,docs,dev]'
	touch $@

# What a user installs: the tools to work on lookdown are left out.
$(VENV)/.demo: $(VENV)/.torch pyproject.toml
	$(PIP) --editable '.[training,service]'
	touch $@
