# Every target does its own set-up on a fresh machine; nothing is installed a second time.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# By the environment, so that it binds the environments in which packages are built as well.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt

.PHONY: help check test test-slow bench demo docs build clean

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 14

check: $(VENV)/.every-extra  ## lint, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: $(VENV)/.every-extra  ## the default suite, with coverage
	$(BIN)/pytest -m "not slow" --cov --cov-report=term --cov-fail-under=95

test-slow: $(VENV)/.every-extra  ## the tests that take longer
	$(BIN)/pytest -m slow

bench: $(VENV)/.every-extra  ## every measurement against peers, into runs/bench; one table of ratios
	$(BIN)/lookdown bench

demo: $(VENV)/.demo  ## the whole story on the synthetic world, into demo/; SERVE=1 ends with the page running
	$(BIN)/lookdown demo
	$(if $(filter 1,$(SERVE)),$(BIN)/lookdown serve demo/gallery)

docs: $(VENV)/.every-extra  ## the documentation site, into build/site; a broken link fails it
	$(BIN)/python -m zensical build --strict

build: $(VENV)/.every-extra  ## the wheel, installed into a clean environment and imported there
	rm -rf dist build/clean
	$(BIN)/python -m build --wheel --outdir dist
	$(PYTHON) -m venv build/clean
	build/clean/bin/python -m pip install --quiet --disable-pip-version-check torch
	build/clean/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd build && clean/bin/python -c "import lookdown; print('lookdown', lookdown.__version__, 'imports from', lookdown.__file__)"
	rm -rf build/clean

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
