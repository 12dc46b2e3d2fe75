# `make run` and `make test` need only Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Installs one lock file and this checkout; pip checks every hash.
install = $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(1) \
	&& $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . \
	&& touch $@

.PHONY: run test test-slow lint bench lock clean

run: $(VENV)/run.stamp
	@$(BIN)/recuerdo demo trading --then-chat

# A file's tests stay together: what they share is made once.
test: lint
	$(BIN)/python -m pytest -m "not slow" --numprocesses auto --dist loadfile

test-slow: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -m slow

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy benchmarks notebooks

bench: $(VENV)/run.stamp
	$(BIN)/recuerdo bench turn

# Writes the two lock files anew from pyproject.toml (needs uv); both name the same versions.
lock:
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --group dev -o requirements-dev.lock pyproject.toml
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --group build -c requirements-dev.lock -o requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .langgraph_api
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Recuerdo needs Python 3.11 or newer; name one with make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: requirements.lock pyproject.toml | $(BIN)/python
	@echo "Installing Recuerdo into $(VENV) ..."
	@$(call install,requirements.lock)

$(VENV)/dev.stamp: requirements-dev.lock pyproject.toml | $(BIN)/python
	@echo "Installing Recuerdo and its test tools into $(VENV) ..."
	@$(call install,requirements-dev.lock)
