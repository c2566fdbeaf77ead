# Everything a newcomer needs: `make demo` shows what bgd does, `make test` checks it.
# Both set up their own environment in .venv; nothing is needed beforehand but Python 3.11, pip and make.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo docs test test-oldest lint types unit setup bench digests clean

demo: setup
	$(BIN)/bgd run digits --preset quick --out demo
	$(BIN)/bgd report demo --out demo/report --quiet

test: lint types unit

# the tests with the lowest versions that pyproject.toml allows; torch and what only develops stay as they are
test-oldest: setup
	$(PYTHON) -m venv $(VENV)-oldest
	echo "$(abspath $(VENV))/lib/python3.11/site-packages" > $(VENV)-oldest/lib/python3.11/site-packages/zz_rest.pth
	$(VENV)-oldest/bin/python -m pip install -q --ignore-installed -r constraints-oldest.txt
	PYTHONPATH=$(CURDIR)/src $(VENV)-oldest/bin/python -m pytest -q -W default

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

unit: setup
	$(BIN)/python -m pytest -q --numprocesses auto --maxprocesses 4 --dist loadfile

# the site, in build/site: strict, so that a warning or a broken link is an error; nothing is fetched but the tools
docs: setup
	$(BIN)/pip install -q -c constraints.txt -e ".[dev,docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: setup
	$(BIN)/pip install -q -c constraints.txt -e ".[dev,bench]"
	$(BIN)/python benchmarks/step.py

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[dev]"
	touch $@

# after a benchmark has written to results/; what bgd packs has its digests already
digests:
	cd results && for folder in */; do (cd "$$folder" && ls | grep -v -e SHA256SUMS -e remarks.md | xargs sha256sum > SHA256SUMS); done

clean:
	rm -rf $(VENV) build dist src/*.egg-info
